import { dlqManagement, dlqMessages } from './dlq/dialects.ts'
import { dlqRoutes } from './dlq/routes.ts'
import type { Dialect } from './http/answers/dialect.ts'
import type { Route } from './http/route.ts'
import { internal } from './internal/dialect.ts'
import { internalDlqRoutes } from './internal/dlq.ts'
import { dashboardRoutes } from './pages/dashboard.ts'
import { docsRoutes } from './pages/docs.ts'
import { queueApi } from './queue/protocol/dialect.ts'
import { queueApiRoutes } from './queue/routes.ts'
import { v1 } from './v1/dialect.ts'
import { v1Routes } from './v1/routes.ts'
import { actuatorRoutes } from './watch/actuator.ts'
import { healthRoutes } from './watch/health.ts'
import { metricsRoutes } from './watch/metrics.ts'
import { webhookApi } from './webhook/dialect.ts'
import { webhookRoutes } from './webhook/routes.ts'

/**
 * The table of all routes. To add a route, add a row to the array of its dialect; no other code registers
 * routes. `test/surface/approved.txt` lists the table and changes with it.
 *
 * `api/http/` is the server plumbing. Each other folder is one dialect or one kind of page: `queue/`
 * (`/v1/…`), `dlq/` (`/api/v1/dlq`), `internal/` (`/internal/v1`), `v1/` (the rest of `/api/v1`), `webhook/`
 * (`/channel…`, `/producer…`), `watch/` (health and metrics), `pages/` (dashboard and docs), `test-hooks/`
 * (only with `--test-hooks`). Handlers parse, call the layers below and answer; rules live in `core/`,
 * `engine/` and `letters/`.
 */
export const routes: readonly Route[] = [
  ...queueApiRoutes,
  ...dlqRoutes,
  ...internalDlqRoutes,
  ...v1Routes,
  ...webhookRoutes,
  ...healthRoutes,
  ...actuatorRoutes,
  ...metricsRoutes,
  ...docsRoutes,
  ...dashboardRoutes,
]

/**
 * Asked in this order about a path that no route matches. `v1` takes all paths that no other dialect owns.
 */
export const dialects: readonly Dialect[] = [queueApi, dlqManagement, dlqMessages, webhookApi, internal, v1]
