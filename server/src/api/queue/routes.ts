import { completeRoute } from './items/complete.ts'
import { leaseRoute } from './items/lease.ts'
import { produceRoute } from './items/produce.ts'
import { retryRoute } from './items/retry.ts'
import { queueAdminRoutes } from './queues/queue-admin.ts'
import { queuesRoutes } from './queues/queues.ts'
import { storageItemsRoutes } from './storage/storage-items.ts'

/** The whole Queue API, but for namespaces and access. */
export const queueApiRoutes = [
  produceRoute,
  leaseRoute,
  completeRoute,
  retryRoute,
  ...queueAdminRoutes,
  ...queuesRoutes,
  ...storageItemsRoutes,
]
