import type { Route } from '../http/route.ts'
import { listRoute } from './management/list.ts'
import { purgeRoute } from './management/purge.ts'
import { requeueRoute } from './management/requeue.ts'
import { statsRoute } from './management/stats.ts'
import { messageRoutes } from './topics/messages.ts'
import { topicRoutes } from './topics/topics.ts'

/**
 * The routes of `/api/v1/dlq`: `management/` has list, requeue, purge and stats, `topics/` has the messages
 * of a topic. `numbered-pages.ts` gives both numbered pages over lists that only have cursors.
 */
export const dlqRoutes: readonly Route[] = [
  listRoute,
  requeueRoute,
  purgeRoute,
  statsRoute,
  ...messageRoutes,
  ...topicRoutes,
]
