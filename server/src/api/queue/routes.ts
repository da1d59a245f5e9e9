import { completeRoute } from './items/complete.ts'
import { leaseRoute } from './items/lease.ts'
import { produceRoute } from './items/produce.ts'
import { retryRoute } from './items/retry.ts'
import { queueAdminRoutes } from './queues/queue-admin.ts'
import { queuesRoutes } from './queues/queues.ts'
import { storageItemsRoutes } from './storage/storage-items.ts'

/**
 * The routes of the Queue API, without namespaces and access.
 *
 * `protocol/` reads and writes messages and errors, `checks/` has the checks that several calls share. The
 * calls are in `items/` (produce, lease, complete, retry), `queues/` (create, update, stats, clear …) and
 * `storage/` (list, import and delete stored items). Status codes and messages are fixed by the contract.
 */
export const queueApiRoutes = [
  produceRoute,
  leaseRoute,
  completeRoute,
  retryRoute,
  ...queueAdminRoutes,
  ...queuesRoutes,
  ...storageItemsRoutes,
]
