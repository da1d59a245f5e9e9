/** Opens the store many times at once, reports each result, and closes on the message `close`. */
import { KnownError } from '../../../src/errors.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { readTask, report, waitForMessage } from './parent-channel.ts'

const task = readTask<{ opens: number }>()
report('warm')
await waitForMessage('go')
const outcomes = await Promise.allSettled(
  Array.from({ length: task.opens }, () => openStorage(task.target, { postgresPoolMax: 2 })),
)
const opened: Storage[] = []
for (const outcome of outcomes) {
  if (outcome.status === 'fulfilled') {
    opened.push(outcome.value)
    report('opened', { queues: (await outcome.value.listQueues({ countMax: 10 })).length })
  } else {
    const error: unknown = outcome.reason
    const code = error instanceof KnownError ? error.code : 'none'
    report('refused', { code, message: String(error) })
  }
}
report('tried')
await waitForMessage('close')
await Promise.all(opened.map((storage) => storage.close()))
process.exit(0)
