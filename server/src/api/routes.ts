import type { Dialect } from './dialect.ts'
import { dashboardRoutes } from './pages/dashboard.ts'
import { docsRoutes } from './pages/docs.ts'
import { queueApi } from './queue/dialect.ts'
import { queueApiRoutes } from './queue/routes.ts'
import type { Route } from './route.ts'
import { v1 } from './v1/dialect.ts'
import { infoRoutes } from './v1/info.ts'
import { queueCareRoutes } from './v1/queue-care.ts'
import { queueItemRoutes } from './v1/queue-items.ts'
import { queueRoutes } from './v1/queues.ts'
import { healthRoutes } from './watch/health.ts'
import { metricsRoutes } from './watch/metrics.ts'

/**
 * Every route there is. A new one is a row in the array of its dialect; nothing else registers
 * routes. `test/surface/approved.txt` shows the table, and changes with it.
 */
export const routes: readonly Route[] = [
  ...queueApiRoutes,
  ...infoRoutes,
  ...queueRoutes,
  ...queueCareRoutes,
  ...queueItemRoutes,
  ...healthRoutes,
  ...metricsRoutes,
  ...docsRoutes,
  ...dashboardRoutes,
]

/** In the order in which they are asked about a path that no route matches. Ours takes what is left. */
export const dialects: readonly Dialect[] = [queueApi, v1]
