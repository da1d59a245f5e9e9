/** The rules that are compared: Redrive's, and those of other programs. */
import { readStack } from '../../server/src/core/grouping/read-stack.ts'
import type { LabelledFailure } from '../../server/test/labelled-failures/cause.ts'
import { groupLikeStore } from '../../server/test/labelled-failures/group-like-store.ts'
import { Drain } from './drain.ts'

/** Forms groups of failures in the order in which they arrive. Returns the final group of each. */
export type GroupingRule = Readonly<{
  name: string
  group(failures: readonly LabelledFailure[]): readonly (string | number)[]
}>

export const groupingRules: readonly GroupingRule[] = [
  { name: 'Redrive', group: groupLikeStore },
  {
    name: 'class + exact message',
    group: (failures) => failures.map((each) => join(each, each.message)),
  },
  {
    name: 'class + first frame',
    group: (failures) => failures.map((each) => join(each, firstFrame(each.stack))),
  },
  {
    name: 'class + in-app frames',
    group: (failures) =>
      failures.map((each) => join(each, readStack(each.stack).frames.join('\n') || each.message)),
  },
  { name: 'Drain', group: groupWithDrain },
]

function join({ queue, errorClass }: LabelledFailure, text: string): string {
  return [queue, errorClass, text].join('\u0000')
}

/** The first line of the stack that is a frame, as it is. */
function firstFrame(stack: string): string {
  const frame = stack.split('\n').find((line) => /^\s+(?:at |File ")|^#0 |^\S+:[0-9]+:in /.test(line))
  return frame?.trim().replaceAll(/:[0-9]+|line [0-9]+|\([0-9]+\)/g, '') ?? ''
}

function groupWithDrain(failures: readonly LabelledFailure[]): string[] {
  const miners = new Map<string, Drain>()
  return failures.map((each) => {
    const key = join(each, '')
    const miner = miners.get(key) ?? new Drain()
    miners.set(key, miner)
    return `${key}${miner.add(each.message)}`
  })
}
