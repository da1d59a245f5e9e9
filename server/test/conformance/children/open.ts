/** Opens the store many times at once, tells how each went, and holds what it got until told to close. */
import { KnownError } from '../../../src/errors.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { hear, taskOf, tell } from './speak.ts'

const task = taskOf<{ opens: number }>()
tell('warm')
await hear('go')
const outcomes = await Promise.allSettled(
  Array.from({ length: task.opens }, () => openStorage(task.target, { postgresPoolMax: 2 })),
)
const opened: Storage[] = []
for (const outcome of outcomes) {
  if (outcome.status === 'fulfilled') {
    opened.push(outcome.value)
    tell('opened', { queues: (await outcome.value.listQueues({ countMax: 10 })).length })
  } else {
    const error: unknown = outcome.reason
    const code = error instanceof KnownError ? error.code : 'none'
    tell('refused', { code, message: String(error) })
  }
}
tell('tried')
await hear('close')
await Promise.all(opened.map((storage) => storage.close()))
process.exit(0)
