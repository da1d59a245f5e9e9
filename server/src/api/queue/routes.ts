import { apiKeyRoutes } from './access/api-keys.ts'
import { namespaceRoutes } from './access/namespaces.ts'
import { roleBindingRoutes } from './access/role-bindings.ts'
import { roleRoutes } from './access/roles.ts'
import { userRoutes } from './access/users.ts'
import { completeRoute } from './items/complete.ts'
import { leaseRoute } from './items/lease.ts'
import { produceRoute } from './items/produce.ts'
import { retryRoute } from './items/retry.ts'
import { queueAdminRoutes } from './queues/queue-admin.ts'
import { queuesRoutes } from './queues/queues.ts'
import { storageItemsRoutes } from './storage/storage-items.ts'

/**
 * The routes of the Queue API.
 *
 * `protocol/` reads and writes messages and errors, `checks/` has the checks that several calls share. The
 * calls are in `items/` (produce, lease, complete, retry), `queues/` (create, update, stats, clear …),
 * `storage/` (list, import and delete stored items) and `access/` (namespaces, users, keys, roles, bindings).
 * Status codes and messages are fixed by the contract.
 */
export const queueApiRoutes = [
  produceRoute,
  leaseRoute,
  completeRoute,
  retryRoute,
  ...queueAdminRoutes,
  ...queuesRoutes,
  ...storageItemsRoutes,
  ...namespaceRoutes,
  ...userRoutes,
  ...apiKeyRoutes,
  ...roleRoutes,
  ...roleBindingRoutes,
]
