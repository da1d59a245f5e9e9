/** A store with an engine and letters, and a clock that moves only when a test advances it. */

import type { NewQueue } from '../../src/core/items/queue.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { createLetters } from '../../src/letters/create-letters.ts'
import type { CampaignSpec, CapturedLetter, Letters } from '../../src/letters/letters.ts'
import type { LettersParts } from '../../src/letters/parts.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { aFailure, anOrigin, bytes, day, noon, second } from '../make.ts'

export const ann = { actor: 'ann', reason: 'INC-7 is fixed', requestId: 'r1' }

export interface TestSystem {
  readonly storage: Storage
  readonly engine: Engine
  readonly letters: Letters
  now(): number
  tick(us: number): void
  /** Starts another server on the same store, with the same clock. */
  startServer(storage?: Storage, parts?: Partial<LettersParts>): { engine: Engine; letters: Letters }
  /** Runs passes of the campaigns until none has anything to do at this time. */
  work(letters?: Letters): Promise<void>
  close(): Promise<void>
}

export function createTestSystem(storage: Storage, parts: Partial<LettersParts> = {}): TestSystem {
  let now = noon
  const clock = { now: () => now }
  const opened: { engine: Engine; letters: Letters }[] = []
  const startServer = (on: Storage = storage, more: Partial<LettersParts> = {}) => {
    const engine = createEngine(on, { clock, isTicking: false, random: () => 0.5, requestsMax: 10_000 })
    const letters = createLetters({ storage: on, engine, clock, ...parts, ...more })
    opened.push({ engine, letters })
    return { engine, letters }
  }
  const own = startServer()
  return {
    storage,
    ...own,
    startServer,
    now: () => now,
    tick: (us) => {
      now += us
    },
    work: async (letters = own.letters) => {
      for (let passes = 0; await letters.passes.campaigns(); passes++) {
        if (passes > 1_000) throw new Error('the campaigns do not end')
      }
    },
    close: async () => {
      for (const { engine, letters } of opened) {
        await letters.close().catch(() => undefined)
        await engine.close()
      }
    },
  }
}

let pairs = 0

/** Creates a queue with a dead queue, both with unique names. */
export async function createQueuePair(
  { storage }: Pick<TestSystem, 'storage'>,
  dead: Partial<NewQueue> = {},
): Promise<{ queue: string; deadQueue: string }> {
  const number = ++pairs
  const [queue, deadQueue] = [`orders-${number}`, `orders-${number}-dead`]
  await storage.write([
    { op: 'create-queue', queue: { name: deadQueue, ...dead }, now: noon },
    // No item expires in tests that let years pass.
    {
      op: 'create-queue',
      queue: { name: queue, deadQueue, attemptsMax: 1, expireTimeoutUs: 9_999 * day },
      now: noon,
    },
  ])
  return { queue, deadQueue }
}

/** Letters whose origin is the queue. */
export function lettersFrom(
  queue: string,
  count: number,
  changes: Partial<CapturedLetter> = {},
): CapturedLetter[] {
  return Array.from({ length: count }, (_, index) => ({
    sourceId: `${queue}/${index}`,
    origin: anOrigin({
      kind: 'queue',
      name: queue,
      partition: 0,
      id: String(index),
      group: null,
      cluster: null,
    }),
    payload: bytes(`order ${index}`),
    key: bytes(`key ${index}`),
    headers: [['trace', bytes(`t${index}`)]] as const,
    failure: aFailure({ message: `card ${index} was refused` }),
    history: [],
    deadLetteredAt: noon - count + index,
    ...changes,
  }))
}

export async function captured(
  world: TestSystem,
  deadQueue: string,
  letters: readonly CapturedLetter[],
): Promise<string[]> {
  return (await world.letters.capture(deadQueue, letters)).map(({ letterId }) => letterId)
}

/**
 * Leases all items. Completes those whose payload `isGood` accepts; the others die. Returns the payloads in
 * order.
 */
export async function consume(
  { storage, now }: TestSystem,
  queue: string,
  isGood: (payload: string) => boolean = () => true,
): Promise<string[]> {
  const seen: string[] = []
  for (;;) {
    const [items] = await storage.write([
      { op: 'lease', queue, partition: 0, holders: Array(1_000).fill('worker'), now: now() },
    ])
    if (items.length === 0) return seen
    const text = (payload: Uint8Array) => new TextDecoder().decode(payload)
    const good = items.filter(({ payload }) => isGood(text(payload)))
    const bad = items.filter(({ payload }) => !isGood(text(payload)))
    const settled = await storage.write([
      { op: 'complete', queue, partition: 0, ids: good.map(({ id }) => id), now: now() },
      {
        op: 'retry',
        queue,
        partition: 0,
        items: bad.map(({ id }) => ({ id, isDead: true, error: null, chance: 0.5, availableAt: null })),
        now: now(),
      },
    ])
    if (settled.some(({ isSettled }) => !isSettled)) throw new Error('could not be settled')
    seen.push(...items.map(({ payload }) => text(payload)))
  }
}

export function aSpec(deadQueue: string, changes: Partial<CampaignSpec> = {}): CampaignSpec {
  return {
    name: 'after the fix',
    action: 'redrive',
    selection: { filter: { queues: [deadQueue] } },
    target: null,
    isDeadAllowed: false,
    canaryCount: 0,
    ratePerSecond: 0,
    rampUs: 0,
    haltRatio: 1,
    haltMin: 1,
    limit: null,
    expectedCount: null,
    ...changes,
  }
}

export const oneSecond = second
