import { broadcastRoute } from './broadcast.ts'
import { deadJobRoutes } from './dead-jobs.ts'
import { entityRoutes } from './entities.ts'
import { jobRoutes } from './jobs.ts'
import { messageRoutes } from './messages.ts'
import { statusRoutes } from './status.ts'

/**
 * The webhook API. Its paths, forms, status codes and texts are fixed by a contract with existing clients.
 *
 * Requests to a consumer check channel and consumer, then their tokens, then the rest. `requests.ts` and
 * `find.ts` have the parts that several routes share.
 */
export const webhookRoutes = [
  ...entityRoutes,
  broadcastRoute,
  ...messageRoutes,
  ...jobRoutes,
  ...deadJobRoutes,
  ...statusRoutes,
]
