import { describe, expect, it } from 'vitest'
import { aHeldItem } from '../../test/held-item.ts'
import { ManualClock } from '../../test/manual-clock.ts'
import { RedriveError } from '../error.ts'
import { Settler, type Settling } from './settler.ts'

const completing = (number: number, partition = 0): Settling => ({
  held: aHeldItem(number, { partition }),
  back: null,
  thrown: undefined,
})
const retrying = (number: number, message: string): Settling => ({
  held: aHeldItem(number),
  back: { isDead: false, failure: { message } },
  thrown: message,
})
const idOf = ({ held }: Settling) => held.item.id
const gone = (settling: Settling) =>
  new RedriveError({ code: 'ITEM_NOT_FOUND', status: 400, message: '', hint: '', itemId: idOf(settling) })
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

/** The server answers each call after 10 ms, in turn with what the test gives; then all is well. */
function aSettler(...answers: (RedriveError | undefined)[]) {
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
    onSettled: (settling, outcome) => void outcomes.push(`${Number(idOf(settling))} ${outcome}`),
    onError: () => {},
  })
  return { settler, clock, calls, outcomes }
}

describe('what became of items', () => {
  it('is reported together: what comes within the linger, and what comes while a call is under way', async () => {
    const { settler, clock, calls, outcomes } = aSettler()
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

  it('goes out at once when a call is full', async () => {
    const { settler, clock, calls } = aSettler()
    for (const number of [1, 2, 3, 4, 5]) settler.add(completing(number))
    await clock.advance(100)
    expect(calls).toEqual(['0 complete 0: 1 2 3 4', '10 complete 0: 5'])
  })

  it('is told with its error: together when it is the same, and never in too many calls at once', async () => {
    const { settler, clock, calls, outcomes } = aSettler()
    for (const number of [1, 2, 3]) settler.add(retrying(number, 'same'))
    for (const number of [4, 5, 6, 7, 8]) settler.add(retrying(number, `other ${number}`))
    await clock.advance(5)
    expect(calls).toEqual(['5 retry 0: 1 2 3', '5 retry 0: 4', '5 retry 0: 5', '5 retry 0: 6'])
    await clock.advance(100)
    expect(calls.slice(4)).toEqual(['15 retry 0: 7', '15 retry 0: 8'])
    expect(outcomes).toHaveLength(8)
  })

  it('leaves out an item whose lease was lost, and does the others', async () => {
    const [a, b, c] = [completing(1), completing(2), completing(3)]
    const { settler, clock, calls, outcomes } = aSettler(gone(b), gone(a))
    for (const settling of [a, b, c]) settler.add(settling)
    await clock.advance(100)
    expect(calls.map((call) => call.split(': ')[1])).toEqual(['1 2 3', '1 3', '3'])
    expect(outcomes).toEqual(['2 lost', '1 lost', '3 done'])
  })

  it('is unknown when an answer was lost and the items are gone, and costs no call per item to find out', async () => {
    const all = [completing(1), completing(2), completing(3), completing(4)] as const
    const { settler, clock, calls, outcomes } = aSettler(lostAnswer, gone(all[0]), gone(all[1]))
    for (const settling of all) settler.add(settling)
    await clock.advance(1_000)
    expect(calls).toHaveLength(3)
    expect(outcomes).toEqual(['1 unknown', '2 unknown', '3 unknown', '4 unknown'])
    expect(settler.size).toBe(0)
  })

  it('is repeated while the server is away, until the leases are over', async () => {
    const { settler, clock, calls, outcomes } = aSettler(...Array.from({ length: 500 }, () => away))
    settler.add(completing(1))
    await clock.advance(59_000)
    expect(calls.length).toBeGreaterThan(50)
    expect(calls.length).toBeLessThan(80)
    expect(outcomes).toEqual([])
    await clock.advance(2_000)
    expect(outcomes).toEqual(['1 lost'])
    expect(clock.timers).toBe(0)
  })

  it('can be given up: whoever waits goes on, and nothing is left behind', async () => {
    const { settler, clock, outcomes } = aSettler(away)
    settler.add(completing(1))
    let isEmpty = false
    void settler.whenEmpty().then(() => {
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
