/** Opens the store, writes one item, and holds the store until it is killed or gets the message `close`. */
import { openStorage } from '../../../src/storage/open-storage.ts'
import { bytes, noon } from '../../make.ts'
import { readTask, report, waitForMessage } from './parent-channel.ts'

const { target } = readTask()
const storage = await openStorage(target)
await storage.write([
  { op: 'create-queue', queue: { name: 'work' }, now: noon },
  { op: 'produce', queue: 'work', partition: 0, items: [{ payload: bytes('kept') }], now: noon },
])
report('holds')
await waitForMessage('close')
await storage.close()
process.exit(0)
