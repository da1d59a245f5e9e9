import type { ApiContext } from '../../src/api/context.ts'
import { toWorkerRules } from '../../src/config/watching-settings.ts'
import { testSettings } from './test-server.ts'

/** For tests of the HTTP layer without workers. */
export const noWatching: ApiContext['watching'] = {
  rules: toWorkerRules(testSettings()),
  receive: async () => ({ refused: [] }),
  readFindings: async () => [],
  peekReport: () => null,
}
