/**
 * Writes until the disk is full, reports the error, and continues when there is space again, or closes the
 * store.
 */
import { rm } from 'node:fs/promises'
import { KnownError } from '../../../src/errors.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { noon } from '../../make.ts'
import { produceUntilFull } from '../support/produce-until-full.ts'
import { listAll } from '../support/store-reads.ts'
import { readTask, report, waitForMessage } from './parent-channel.ts'

const task = readTask<{ ballast?: string; countMax: number; mustCloseFull: boolean }>()
const storage = await openStorage(task.target)
await storage.write([{ op: 'create-queue', queue: { name: 'work' }, now: noon }])

const kept: string[] = []
const error = await produceUntilFull(storage, 'first', task.countMax, kept)
report('full', { code: error instanceof KnownError ? error.code : 'none', message: String(error) })
report('kept', { names: kept })
report('verified', {
  differences: await storage.verify(),
  itemCount: (await listAll(storage, 'work')).length,
})

if (task.mustCloseFull) {
  await storage.close()
  report('closed')
  process.exit(0)
}
await waitForMessage('freed')
if (task.ballast !== undefined) await rm(task.ballast)
const after = await produceUntilFull(storage, 'second', 5, kept)
report('recovered', { error: after === undefined ? null : String(after) })
report('kept', { names: kept })
await storage.close()

const again = await openStorage(task.target)
const names = (await listAll(again, 'work')).map((item) => item.reference)
report('reopened', { names, differences: await again.verify() })
await again.close()
process.exit(0)
