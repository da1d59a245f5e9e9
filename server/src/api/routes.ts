import { dlqManagement, dlqMessages } from './dlq/dialects.ts'
import { dlqRoutes } from './dlq/routes.ts'
import type { Dialect } from './http/dialect.ts'
import type { Route } from './http/route.ts'
import { dashboardRoutes } from './pages/dashboard.ts'
import { docsRoutes } from './pages/docs.ts'
import { queueApi } from './queue/protocol/dialect.ts'
import { queueApiRoutes } from './queue/routes.ts'
import { auditRoutes } from './v1/audit/audit.ts'
import { campaignRoutes } from './v1/campaigns/campaigns.ts'
import { campaignEventRoutes } from './v1/campaigns/events.ts'
import { v1 } from './v1/dialect.ts'
import { infoRoutes } from './v1/info.ts'
import { letterActionRoutes } from './v1/letters/actions.ts'
import { archiveRoutes } from './v1/letters/archive.ts'
import { captureRoutes } from './v1/letters/capture.ts'
import { letterCountRoutes } from './v1/letters/counts.ts'
import { exportRoutes } from './v1/letters/export.ts'
import { groupRoutes } from './v1/letters/groups.ts'
import { letterRoutes } from './v1/letters/letters.ts'
import { queueAdminRoutes } from './v1/queues/queue-admin.ts'
import { queueItemRoutes } from './v1/queues/queue-items.ts'
import { queueRoutes } from './v1/queues/queues.ts'
import { healthRoutes } from './watch/health.ts'
import { metricsRoutes } from './watch/metrics.ts'

/**
 * The table of all routes. To add a route, add a row to the array of its dialect; no other code registers
 * routes. `test/surface/approved.txt` lists the table and changes with it.
 *
 * `api/http/` is the server plumbing. Each other folder is one dialect or one kind of page: `queue/`
 * (`/v1/…`), `dlq/` (`/api/v1/dlq`), `v1/` (the rest of `/api/v1`), `watch/` (health and metrics), `pages/`
 * (dashboard and docs), `test-hooks/` (only with `--test-hooks`). Handlers parse, call the layers below and
 * answer; rules live in `core/`, `engine/` and `letters/`.
 */
export const routes: readonly Route[] = [
  ...queueApiRoutes,
  ...dlqRoutes,
  ...infoRoutes,
  ...queueRoutes,
  ...queueAdminRoutes,
  ...queueItemRoutes,
  ...captureRoutes,
  ...letterRoutes,
  ...exportRoutes,
  ...letterCountRoutes,
  ...letterActionRoutes,
  ...archiveRoutes,
  ...groupRoutes,
  ...campaignRoutes,
  ...campaignEventRoutes,
  ...auditRoutes,
  ...healthRoutes,
  ...metricsRoutes,
  ...docsRoutes,
  ...dashboardRoutes,
]

/**
 * Asked in this order about a path that no route matches. `v1` takes all paths that no other dialect owns.
 */
export const dialects: readonly Dialect[] = [queueApi, dlqManagement, dlqMessages, v1]
