import { describe, expect, it } from 'vitest'
import { createActiveItem } from '../../test/create-active-item.ts'
import { ManualClock } from '../../test/manual-clock.ts'
import { RedriveError } from '../http/error.ts'
import { type Settlement, Settler } from './settler.ts'

const completing = (number: number, partition = 0): Settlement => ({
  active: createActiveItem(number, { partition }),
  retry: null,
  thrown: undefined,
})
const retrying = (number: number, message: string): Settlement => ({
  active: createActiveItem(number),
  retry: { isDead: false, failure: { message } },
  thrown: message,
})
const getId = ({ active }: Settlement) => active.item.id
const gone = (settlement: Settlement) =>
  new RedriveError({ code: 'ITEM_NOT_FOUND', status: 400, message: '', hint: '', itemId: getId(settlement) })
const lostAnswer = new RedriveError({
  code: 'CONNECTION_LOST',
  status: 0,
  message: '',
  hint: '',
  isRetryable: true,
  isOutcomeUnknown: true,
})
const away = new RedriveError({
  code: 'CONNECTION_REFUSED',
  status: 0,
  message: '',
  hint: '',
  isRetryable: true,
})

/** Each call takes 10 ms. The first calls get the given answers, in order; every later call succeeds. */
function createSettler(...answers: (RedriveError | undefined)[]) {
  const clock = new ManualClock()
  const calls: string[] = []
  const outcomes: string[] = []
  const call = async (kind: string, partition: number, ids: readonly string[], signal?: AbortSignal) => {
    calls.push(`${clock.elapsedMs()} ${kind} ${partition}: ${ids.map(Number).join(' ')}`)
    const error = answers.shift()
    await new Promise<void>((resolve, reject) => {
      clock.setTimer(resolve, 10)
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
    if (error !== undefined) throw error
  }
  const settler = new Settler({
    client: {
      complete: (_, partition, ids, options) => call('complete', partition, ids, options?.signal),
      retry: (_, partition, items, options) =>
        call(
          'retry',
          partition,
          items.map(({ id }) => id),
          options?.signal,
        ),
    },
    clock,
    random: () => 1,
    queue: 'q',
    batchMax: 4,
    lingerMs: 5,
    backoffMsMax: 1_000,
    onSettled: (settlement, outcome) => void outcomes.push(`${Number(getId(settlement))} ${outcome}`),
    onError: () => {},
  })
  return { settler, clock, calls, outcomes }
}

describe('Settler', () => {
  it('items added within lingerMs, or while a call is in progress, share a call', async () => {
    const { settler, clock, calls, outcomes } = createSettler()
    for (const number of [1, 2]) settler.add(completing(number))
    settler.add(completing(3, 1))
    await clock.advance(6)
    settler.add(completing(4))
    settler.add(completing(5))
    await clock.advance(100)
    expect(calls).toEqual(['5 complete 0: 1 2', '5 complete 1: 3', '15 complete 0: 4 5'])
    expect(outcomes.toSorted()).toEqual(['1 done', '2 done', '3 done', '4 done', '5 done'])
    expect(settler.size).toBe(0)
    expect(clock.timers).toBe(0)
  })

  it('a full batch is sent immediately', async () => {
    const { settler, clock, calls } = createSettler()
    for (const number of [1, 2, 3, 4, 5]) settler.add(completing(number))
    await clock.advance(100)
    expect(calls).toEqual(['0 complete 0: 1 2 3 4', '10 complete 0: 5'])
  })

  it('retries with the same error share a call, and at most 4 calls run concurrently', async () => {
    const { settler, clock, calls, outcomes } = createSettler()
    for (const number of [1, 2, 3]) settler.add(retrying(number, 'same'))
    for (const number of [4, 5, 6, 7, 8]) settler.add(retrying(number, `other ${number}`))
    await clock.advance(5)
    expect(calls).toEqual(['5 retry 0: 1 2 3', '5 retry 0: 4', '5 retry 0: 5', '5 retry 0: 6'])
    await clock.advance(100)
    expect(calls.slice(4)).toEqual(['15 retry 0: 7', '15 retry 0: 8'])
    expect(outcomes).toHaveLength(8)
  })

  it('a call that was rejected because of a lost item is repeated without that item', async () => {
    const [a, b, c] = [completing(1), completing(2), completing(3)]
    const { settler, clock, calls, outcomes } = createSettler(gone(b), gone(a))
    for (const settlement of [a, b, c]) settler.add(settlement)
    await clock.advance(100)
    expect(calls.map((call) => call.split(': ')[1])).toEqual(['1 2 3', '1 3', '3'])
    expect(outcomes).toEqual(['2 lost', '1 lost', '3 done'])
  })

  it('after a lost answer, two missing items make the whole batch unknown without further calls', async () => {
    const all = [completing(1), completing(2), completing(3), completing(4)] as const
    const { settler, clock, calls, outcomes } = createSettler(lostAnswer, gone(all[0]), gone(all[1]))
    for (const settlement of all) settler.add(settlement)
    await clock.advance(1_000)
    expect(calls).toHaveLength(3)
    expect(outcomes).toEqual(['1 unknown', '2 unknown', '3 unknown', '4 unknown'])
    expect(settler.size).toBe(0)
  })

  it('a call is repeated while the server is unavailable, until the leases end', async () => {
    const { settler, clock, calls, outcomes } = createSettler(...Array.from({ length: 500 }, () => away))
    settler.add(completing(1))
    await clock.advance(59_000)
    expect(calls.length).toBeGreaterThan(50)
    expect(calls.length).toBeLessThan(80)
    expect(outcomes).toEqual([])
    await clock.advance(2_000)
    expect(outcomes).toEqual(['1 lost'])
    expect(clock.timers).toBe(0)
  })

  it('close resolves whenEmpty, and leaves no timer and no outcome', async () => {
    const { settler, clock, outcomes } = createSettler(away)
    settler.add(completing(1))
    let isEmpty = false
    void settler.waitUntilEmpty().then(() => {
      isEmpty = true
    })
    await clock.advance(16)
    expect(isEmpty).toBe(false)
    settler.close()
    await clock.advance(0)
    expect(isEmpty).toBe(true)
    expect(clock.timers).toBe(0)
    expect(outcomes).toEqual([])
  })
})
