import { describe, expect, it } from 'vitest'
import { noon } from '../../../test/make.ts'
import type { ItemChange } from '../../storage/contract/items.ts'
import type { Command, Storage } from '../../storage/contract/storage.ts'
import type { EngineEvent } from '../events.ts'
import { createWriter } from './writer.ts'

const aChange = (changes: Partial<ItemChange> = {}): ItemChange => ({
  fromId: 'a',
  fromQueue: 'orders',
  fromPartition: 0,
  to: 'waiting',
  cause: 'retry',
  id: 'b',
  queue: 'orders',
  partition: 0,
  failure: null,
  ...changes,
})
const failure = { errorCode: 'r', errorClass: '', message: '', stack: '' } as ItemChange['failure']
const redrive = (count: number): Command => ({
  op: 'redrive',
  letters: Array.from({ length: count }, (_, index) => ({ letterId: `l${index}`, queue: null })),
  isDeadAllowed: false,
  isCapped: false,
  actor: 'ann',
  now: noon,
})
const lock = { name: 'l', token: 1 }

/** A writer whose store answers with the given results, and all that it reports. */
function aWriter(answer: () => Promise<readonly unknown[]>) {
  const available: string[] = []
  const expired: string[] = []
  const events: EngineEvent[] = []
  const measured: string[] = []
  const errors: unknown[] = []
  let stored = 0
  const writer = createWriter({
    storage: { write: answer as unknown as Storage['write'] },
    onAvailable: (queue, partition, count) => available.push(`${queue}/${partition}: ${count}`),
    onExpired: (queue) => expired.push(queue),
    onStored: () => stored++,
    onEvent: (event) => events.push(event),
    onWrite: (command) => measured.push(command),
    onError: (error) => errors.push(error),
  })
  return { writer, available, expired, events, measured, errors, stored: () => stored }
}

describe('the writer', () => {
  it('a redrive makes its items available, and reports the letters that were sent or refused', async () => {
    const started = { isStarted: true, queue: 'orders', partition: 1, id: 'i', number: 1 }
    const { writer, available, events } = aWriter(async () => [
      [
        { letterId: 'l0', ...started },
        { letterId: 'l1', isStarted: false, refusal: 'no-target' },
        { letterId: 'l2', ...started },
      ],
    ])
    await writer.write([redrive(3)])
    expect(available).toEqual(['orders/1: 1', 'orders/1: 1'])
    expect(events).toEqual([
      { type: 'letters-redriven', count: 2 },
      { type: 'redrives-refused', refusal: 'no-target', count: 1 },
    ])
  })

  it('items that time made waiting are available, and queues with expired items are counted again', async () => {
    const changes = [
      aChange({ cause: 'lease-end', partition: 2 }),
      aChange({ to: 'removed', cause: 'expire', fromQueue: 'mails', failure }),
      aChange({ to: 'moved', queue: 'dead', cause: 'expire', outcome: 'failed' }),
    ]
    const { writer, available, expired, events } = aWriter(async () => [{ changes, isMore: false }])
    await writer.write([{ op: 'advance', now: noon, countMax: 9 }])
    expect(available).toEqual(['orders/2: 1', 'dead/0: 1'])
    expect(expired).toEqual(['mails', 'orders'])
    expect(events).toEqual([
      { type: 'redrives-ended', outcome: 'failed', count: 1 },
      { type: 'items-dropped', queue: 'mails', items: [changes[1]] },
    ])
  })

  it('an import counts the items that it stored and that can be leased', async () => {
    const imported = (id: string | null) => ({ id, createdAt: noon, expireDeadline: noon })
    const answer = [['a', null, 'c', 'd'].map(imported)]
    const { writer, available, events, stored } = aWriter(async () => answer)
    const payload = new Uint8Array()
    const origin = { kind: 'kafka' } as never
    const items = [{ payload, origin }, { payload, origin }, { payload, availableAt: noon + 1 }, { payload }]
    await writer.write([{ op: 'import', queue: 'dead', partition: 0, items, now: noon }])
    expect(available).toEqual(['dead/0: 2'])
    expect(events).toEqual([{ type: 'letters-captured', queue: 'dead', count: 1 }])
    expect(stored()).toBe(1)
  })

  it('a refused settle and a rejected write have no consequences', async () => {
    const refused = aWriter(async () => [{ isSettled: false, refused: [] }])
    await refused.writer.write([{ op: 'retry', queue: 'orders', partition: 0, items: [], now: noon }])
    expect([refused.available, refused.events]).toEqual([[], []])
    const rejected = aWriter(async () => {
      throw new Error('no disk')
    })
    await expect(rejected.writer.write([redrive(1)])).rejects.toThrow('no disk')
    expect([rejected.available, rejected.events, rejected.measured]).toEqual([[], [], ['redrive']])
  })

  it('a write is measured once, by its main command', async () => {
    const { writer, measured } = aWriter(async () => [])
    const fence = { op: 'fence', lock } as const
    const audit = { op: 'audit', entries: [] } as const
    await writer.write([{ op: 'release-lock', lock }])
    await writer.write([fence, audit])
    await writer.write([
      fence,
      { op: 'skip-letters', campaignId: 'c', refusal: 'cancelled', countMax: 1 },
      audit,
    ])
    expect(measured).toEqual(['release-lock', 'audit', 'skip-letters'])
  })

  it('a consequence that fails is reported, and the caller gets its results', async () => {
    const { writer, errors } = aWriter(async () => [undefined])
    expect(await writer.write([redrive(1)])).toEqual([undefined])
    expect(errors).toHaveLength(1)
  })
})
