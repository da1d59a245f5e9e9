/**
 * Writes until the disk is full, tells what that looks like from inside, and goes on when there is
 * space again, or closes.
 */
import { rm } from 'node:fs/promises'
import { KnownError } from '../../../src/errors.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { noon } from '../../make.ts'
import { fillUp } from '../fill-up.ts'
import { listAll } from '../store-facts.ts'
import { hear, taskOf, tell } from './speak.ts'

const task = taskOf<{ ballast?: string; countMax: number; mustCloseFull: boolean }>()
const storage = await openStorage(task.target)
await storage.write([{ op: 'create-queue', queue: { name: 'work' }, now: noon }])

const kept: string[] = []
const error = await fillUp(storage, 'first', task.countMax, kept)
tell('full', { code: error instanceof KnownError ? error.code : 'none', message: String(error) })
tell('kept', { names: kept })
tell('sound', { differences: await storage.verify(), there: (await listAll(storage, 'work')).length })

if (task.mustCloseFull) {
  await storage.close()
  tell('closed')
  process.exit(0)
}
await hear('freed')
if (task.ballast !== undefined) await rm(task.ballast)
const after = await fillUp(storage, 'second', 5, kept)
tell('recovered', { error: after === undefined ? null : String(after) })
tell('kept', { names: kept })
await storage.close()

const again = await openStorage(task.target)
const names = (await listAll(again, 'work')).map((item) => item.reference)
tell('reopened', { names, differences: await again.verify() })
await again.close()
process.exit(0)
