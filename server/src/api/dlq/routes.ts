import type { Route } from '../route.ts'
import { listRoute } from './list.ts'
import { messageRoutes } from './messages.ts'
import { purgeRoute } from './purge.ts'
import { requeueRoute } from './requeue.ts'
import { statsRoute } from './stats.ts'
import { topicRoutes } from './topics.ts'

export const dlqRoutes: readonly Route[] = [
  listRoute,
  requeueRoute,
  purgeRoute,
  statsRoute,
  ...messageRoutes,
  ...topicRoutes,
]
