import type { ApiContext } from '../../src/api/context.ts'

/** Channels of a server that has none. */
export const noNotifier: ApiContext['notifier'] = {
  channels: {
    list: async () => [],
    get: async () => null,
    find: async () => null,
    put: async () => undefined,
    remove: async () => undefined,
  },
  sendTest: async () => ({ isDelivered: true, latencyMs: 0, status: null, error: null }),
}
