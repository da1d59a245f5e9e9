/** The rules that are compared: Redrive's, and those of other programs. */
import { toCause } from '../../server/src/core/dead-letters/cause.ts'
import { GroupIndex } from '../../server/src/core/grouping/group-index.ts'
import { readStack } from '../../server/src/core/grouping/read-stack.ts'
import type { Failure } from '../../server/src/core/items/item.ts'
import { Drain } from './drain.ts'
import type { LabelledFailure } from './read-data.ts'

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

/**
 * As a store does: the group of the cause, or the one that the miner chooses among the groups of the queue. A
 * group that becomes part of another one is counted with that one.
 */
export function groupLikeStore(failures: readonly LabelledFailure[]): number[] {
  const queues = new Map<string, GroupIndex>()
  const roots = new Map<number, number>()
  let count = 0
  const ids = failures.map((each) => {
    const index = queues.get(each.queue) ?? new GroupIndex()
    queues.set(each.queue, index)
    const cause = toCause(toFailure(each), { name: each.queue })
    const known = index.find(cause.fingerprint)
    if (known !== undefined) return known
    const match = index.match(cause)
    if (match.kind === 'create') {
      const id = ++count
      index.add({ ...cause, id })
      return id
    }
    if (match.kind === 'widen') {
      index.widen(cause, match)
      for (const id of match.merged) roots.set(id, match.id)
    }
    return match.id
  })
  const findRoot = (id: number): number => {
    const root = roots.get(id)
    return root === undefined ? id : findRoot(root)
  }
  return ids.map(findRoot)
}

function toFailure({ errorClass, message, stack }: LabelledFailure): Failure {
  const unknown = { attempts: 1, firstFailedAt: 0, lastFailedAt: 0, worker: '' }
  return { errorCode: '', errorClass, message, stack, ...unknown }
}
