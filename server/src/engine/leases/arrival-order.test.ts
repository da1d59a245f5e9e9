import { describe, expect, it } from 'vitest'
import { splitIntoRuns } from './arrival-order.ts'

describe('requests of several kinds', () => {
  it('requests of several kinds are split into runs of one kind, in order of arrival', async () => {
    const done: string[] = []
    const kind = (name: string, arrivals: readonly number[]) => ({
      arrivals,
      process: async (from: number, to: number) => {
        done.push(`${name} ${arrivals.slice(from, to).join()}`)
      },
    })
    const runs = splitIntoRuns([
      kind('produce', [1, 2, 7]),
      kind('retry', [3, 8]),
      kind('lease', [4, 5]),
      kind('none', []),
    ])
    for (const run of runs) await run.process()
    expect(done).toEqual(['produce 1,2', 'retry 3', 'lease 4,5', 'produce 7', 'retry 8'])
    expect(runs.map(({ arrival }) => arrival)).toEqual([2, 3, 5, 7, 8])
  })
})
