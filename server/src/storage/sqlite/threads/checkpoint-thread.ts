/** The thread that copies the WAL into the file (wal.ts), so that no commit waits for it. */
import { parentPort, workerData } from 'node:worker_threads'
import { Database } from '../connection/database.ts'
import {
  encodeError,
  type OpenReport,
  pack,
  type Reply,
  type Request,
  type ThreadData,
} from './thread-messages.ts'
import { checkpoint, WalState } from './wal.ts'

const port = parentPort
if (port === null) throw new Error('the checkpoint thread runs as a thread')
const { path, synchronous, wal: shared } = workerData as ThreadData

/** Between two checkpoints. A page that was written several times in between is copied once. */
const intervalMs = 200

try {
  const wal = new WalState(shared)
  const database = new Database(path)
  database.exec(`pragma synchronous = ${synchronous}`)
  let commits = 0
  let isComplete = false
  const pass = (): void => {
    const now = wal.commits
    if (isComplete && now === commits) return
    try {
      isComplete = checkpoint(database, wal)
      commits = now
    } catch {
      // On a full disk the pages stay in the WAL, and the next pass tries again.
    }
  }
  const timer = setInterval(pass, intervalMs)
  const reply = (message: Reply | OpenReport) => port.postMessage(message)
  port.on('message', (request: Request) => {
    if (request.ask !== 'close') {
      reply({
        call: request.call,
        error: encodeError(new Error(`the checkpoint thread cannot ${request.ask}`)),
      })
      return
    }
    clearInterval(timer)
    database.close()
    reply({ call: request.call, value: pack(null) })
    port.close()
  })
  reply({ isOpen: true })
} catch (error) {
  port.postMessage({ isOpen: false, error: encodeError(error) } satisfies OpenReport)
  port.close()
}
