import type { ApiContext } from '../../src/api/context.ts'
import { KnownError } from '../../src/errors.ts'

/** For tests of the HTTP layer without alerts. */
export const noAlerts: ApiContext['alerts'] = {
  rules: {
    list: async () => [],
    get: async () => null,
    put: async () => undefined,
    remove: async () => undefined,
  },
  decide: async (id) => {
    throw new KnownError('ALERT_NOT_FOUND', `there is no alert ${id}`)
  },
}
