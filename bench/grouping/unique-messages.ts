/**
 * The time and memory of grouping when every failure is another cause, so that nothing is found in a cache.
 * The time per letter must not grow with the number of letters, and the memory must be bounded.
 */
import { performance } from 'node:perf_hooks'
import { foldCause } from '../../server/src/core/dead-letters/cause.ts'
import { GroupIndex } from '../../server/src/core/grouping/group-index.ts'
import { toFailureCause } from '../../server/test/labelled-failures/group-like-store.ts'
import { createValues } from '../../server/test/labelled-failures/values.ts'

const parts = 5

export function describeUniqueMessages(count: number): string {
  const index = new GroupIndex()
  const values = createValues(1)
  const figures: string[] = []
  for (let part = 0; part < parts; part++) {
    const messages = Array.from({ length: count / parts }, () => createMessage(values.text(letters, 60)))
    const start = performance.now()
    for (const message of messages) addLetter(index, message)
    const usEach = ((performance.now() - start) * 1_000 * parts) / count
    figures.push(`${usEach.toFixed(0)} us (${formatHeap()})`)
  }
  return `unique messages: time per letter and heap after each fifth of ${count.toLocaleString('en-US')} letters in one queue: ${figures.join(', ')}; ${index.size.toLocaleString('en-US')} groups`
}

const letters = 'abcdefghijklmnopqrstuvwxyz'

/** Words that no other message has. The first word is one of a few, so that buckets are full. */
function createMessage(text: string): string {
  return `${'abcdefgh'.charAt(text.charCodeAt(0) % 8)}-${(text.match(/.{1,6}/g) ?? []).join(' ')}`
}

function addLetter(index: GroupIndex, message: string): void {
  let cause = toFailureCause({ cause: '', queue: 'orders', errorClass: 'Error', message, stack: '' })
  if (index.find(cause.fingerprint) !== undefined) return
  const match = index.match(cause)
  if (match.kind === 'widen') index.widen(cause, match)
  if (match.kind !== 'create') return
  for (let coarser = foldCause(cause, index.size); coarser !== undefined; ) {
    cause = coarser
    if (index.find(cause.fingerprint) !== undefined) return
    coarser = foldCause(cause, index.size)
  }
  index.add({ ...cause, id: index.size + 1 })
}

function formatHeap(): string {
  return `${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(0)} MiB`
}
