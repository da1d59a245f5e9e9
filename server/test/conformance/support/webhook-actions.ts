/** Short functions for tests of webhooks in a store. */

import { createXidGenerator } from '../../../src/core/ids/xid.ts'
import { defaultDeliveryRules } from '../../../src/core/webhook/delivery-policy.ts'
import type { Consumer, Message, NewMessage } from '../../../src/storage/contract/webhooks.ts'
import { bytes, noon } from '../../make.ts'
import type { StoreFixture } from './test-stores.ts'

export const nextXid = createXidGenerator({ machine: Uint8Array.of(1, 2, 3), processId: 4, counterStart: 0 })

export type WebhookActions = ReturnType<typeof createWebhookActions>

export function createWebhookActions(given: Pick<StoreFixture, 'run' | 'storage'>) {
  const entity = (id: string) =>
    ({
      id,
      name: id.toUpperCase(),
      token: `${id}-token`,
      xid: nextXid(noon),
      condition: { kind: 'any' },
      now: noon,
    }) as const
  const newMessage = (channelId: string, id: string, changes: Partial<NewMessage> = {}): NewMessage => ({
    channelId,
    channelToken: `${channelId}-token`,
    producerId: 'p',
    producerToken: 'p-token',
    fault: null,
    dueAt: null,
    id,
    xid: nextXid(noon),
    contentType: 'application/json',
    priority: 0,
    headers: [],
    payload: bytes(`payload of ${id}`),
    ...changes,
  })
  return {
    entity,
    newMessage,
    channel: async (id: string): Promise<void> => {
      await given.run({ op: 'put-producer', ...entity('p') })
      await given.run({ op: 'put-channel', ...entity(id) })
    },
    consumer: async (channelId: string, id: string, type: 'push' | 'pull' = 'push'): Promise<Consumer> => {
      const callbackUrl = `http://${id}.example`
      const rules = defaultDeliveryRules
      const put = await given.run({ op: 'put-consumer', ...entity(id), channelId, callbackUrl, type, rules })
      if (!('row' in put)) throw new Error(put.outcome)
      return put.row
    },
    /** Stores the message and creates its jobs. */
    broadcast: async (channelId: string, id: string, changes: Partial<NewMessage> = {}): Promise<Message> => {
      const messages = [newMessage(channelId, id, changes)]
      const [accepted] = await given.run({ op: 'accept-messages', messages, now: noon })
      if (accepted?.isAccepted !== true) throw new Error(accepted?.refusal)
      await given.run({ op: 'dispatch-messages', numbers: [accepted.number ?? 0], now: noon })
      return (await given.storage.getMessage(channelId, id)) as Message
    },
  }
}
