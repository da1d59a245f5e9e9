import { completeRoute } from './complete.ts'
import { leaseRoute } from './lease.ts'
import { produceRoute } from './produce.ts'
import { queueCareRoutes } from './queue-care.ts'
import { queuesRoutes } from './queues.ts'
import { retryRoute } from './retry.ts'
import { storageItemsRoutes } from './storage-items.ts'

/** The whole Queue API, but for namespaces and access. */
export const queueApiRoutes = [
  produceRoute,
  leaseRoute,
  completeRoute,
  retryRoute,
  ...queueCareRoutes,
  ...queuesRoutes,
  ...storageItemsRoutes,
]
