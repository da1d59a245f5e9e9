import type { Route } from '../http/route.ts'
import { alertRuleRoutes } from './alerts/alert-rules.ts'
import { alertRoutes } from './alerts/alerts.ts'
import { alertChannelRoutes } from './alerts/channels.ts'
import { auditRoutes } from './audit/audit.ts'
import { campaignRoutes } from './campaigns/campaigns.ts'
import { campaignEventRoutes } from './campaigns/events.ts'
import { causeRoutes } from './causes/causes.ts'
import { groupChangeRoutes } from './causes/changes.ts'
import { groupJobRoutes } from './causes/group-jobs.ts'
import { groupingRuleRoutes } from './causes/grouping-rules.ts'
import { groupRoutes } from './causes/groups.ts'
import { lifecycleRoutes } from './causes/lifecycle.ts'
import { infoRoutes } from './info.ts'
import { kafkaRoutes } from './kafka/kafka.ts'
import { archiveRoutes } from './letters/archive.ts'
import { captureRoutes } from './letters/capture.ts'
import { letterCountRoutes } from './letters/counts.ts'
import { discardRoutes } from './letters/discard.ts'
import { exportRoutes } from './letters/export.ts'
import { letterRoutes } from './letters/letters.ts'
import { redriveRoutes } from './letters/redrive.ts'
import { undoRoutes } from './letters/undo.ts'
import { namespaceRoutes } from './namespaces/namespaces.ts'
import { queueAdminRoutes } from './queues/queue-admin.ts'
import { queueItemRoutes } from './queues/queue-items.ts'
import { queueRoutes } from './queues/queues.ts'
import { redactionRuleRoutes } from './queues/redaction-rules.ts'
import { sessionRoutes } from './session/session.ts'
import { attemptRoutes } from './webhooks/attempts.ts'
import { consumerRoutes } from './webhooks/consumers.ts'
import { secretRoutes } from './webhooks/secrets.ts'
import { heartbeatRoutes } from './workers/heartbeat.ts'
import { workerRoutes } from './workers/workers.ts'

/**
 * The routes of Redrive's own API.
 *
 * `queues/`, `letters/`, `causes/`, `campaigns/` and `audit/` have the routes by resource. `filter/` reads
 * and shows the conditions that select letters. `values/` has cursors, durations, bytes and other values that
 * several routes share. A `…Spec` is the schema of a request, a `…View` the schema of an answer.
 */
export const v1Routes: readonly Route[] = [
  ...infoRoutes,
  ...queueRoutes,
  ...queueAdminRoutes,
  ...queueItemRoutes,
  ...redactionRuleRoutes,
  ...namespaceRoutes,
  ...captureRoutes,
  ...letterRoutes,
  ...exportRoutes,
  ...letterCountRoutes,
  ...redriveRoutes,
  ...discardRoutes,
  ...undoRoutes,
  ...archiveRoutes,
  ...groupRoutes,
  ...causeRoutes,
  ...groupChangeRoutes,
  ...lifecycleRoutes,
  ...groupJobRoutes,
  ...groupingRuleRoutes,
  ...campaignRoutes,
  ...campaignEventRoutes,
  ...auditRoutes,
  ...sessionRoutes,
  ...consumerRoutes,
  ...attemptRoutes,
  ...secretRoutes,
  ...heartbeatRoutes,
  ...workerRoutes,
  ...kafkaRoutes,
  ...alertChannelRoutes,
  ...alertRuleRoutes,
  ...alertRoutes,
]
