import { describe, expect, it } from 'vitest'
import { evaluateDeadJobs } from './check-dlq.ts'
import { run } from './run.ts'

const dead = (deadCount: number, consumerId = 'k', channelId = 'c') => ({ channelId, consumerId, deadCount })
const limits = { warning: 10, critical: 20 }

describe('the result of a check of dead jobs', () => {
  it.each([
    [[], 0, 'DLQ OK - 0 dead jobs of 0 consumers | total=0;;;0'],
    [[dead(10)], 0, "DLQ OK - 10 dead jobs of 1 consumer | total=10;;;0 'c/k'=10;10;20;0"],
    [[dead(11)], 1, "DLQ WARNING - 11 dead jobs of 1 consumer: c/k has 11 | total=11;;;0 'c/k'=11;10;20;0"],
    [[dead(20)], 1, "DLQ WARNING - 20 dead jobs of 1 consumer: c/k has 20 | total=20;;;0 'c/k'=20;10;20;0"],
    [
      [dead(1, 'a'), dead(21, 'b')],
      2,
      "DLQ CRITICAL - 22 dead jobs of 2 consumers: c/b has 21 | total=22;;;0 'c/b'=21;10;20;0 'c/a'=1;10;20;0",
    ],
  ])('the worst consumer decides: %j', (consumers, code, line) => {
    expect(evaluateDeadJobs(consumers, limits)).toEqual({ code, line })
  })

  it('names in the line and in labels cannot break the format of the monitor', () => {
    const { line } = evaluateDeadJobs([dead(30, "a|b=c'd\ne")], limits)
    expect(line).toBe(
      "DLQ CRITICAL - 30 dead jobs of 1 consumer: c/a_b=c'd_e has 30 | total=30;;;0 'c/a_b_c''d_e'=30;10;20;0",
    )
  })

  it('a line names few of many consumers', () => {
    const many = Array.from({ length: 40 }, (_, n) => dead(100, `k${n}`))
    expect(evaluateDeadJobs(many, limits).line.split(' | ')[0]).toMatch(/c\/k4 has 100, and 35 more$/)
  })
})

it.each([
  [['check', 'dlq']],
  [['check', 'dlq', '--warning', '1']],
  [['check', 'dlq', '--warning', 'x', '--critical', '2']],
  [['check', 'dlq', '--warning', '3', '--critical', '2']],
  [['check', 'dlq', '--warning', '1', '--critical', '2', '--timeout', '0']],
  [['check', 'dlq', '--warning', '1', '--critical', '2', '--server', 'nonsense']],
  [['check', 'dlq', '--warnin', '1', '--critical', '2']],
])('the arguments %j give the state UNKNOWN and never CRITICAL', async (args) => {
  const lines: string[] = []
  const print = (line: string) => void lines.push(line)
  const code = await run(args, { environment: {}, folder: import.meta.dirname, print, report: () => {} })
  expect([code, lines.length]).toEqual([3, 1])
  expect(lines[0]).toMatch(/^DLQ UNKNOWN - /)
})
