import type { Route } from '../http/route.ts'
import { listRoute } from './management/list.ts'
import { purgeRoute } from './management/purge.ts'
import { requeueRoute } from './management/requeue.ts'
import { statsRoute } from './management/stats.ts'
import { messageRoutes } from './topics/messages.ts'
import { topicRoutes } from './topics/topics.ts'

export const dlqRoutes: readonly Route[] = [
  listRoute,
  requeueRoute,
  purgeRoute,
  statsRoute,
  ...messageRoutes,
  ...topicRoutes,
]
