/** The thread that brings what is in the log into the file (log.ts), so that no commit waits for that. */
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
if (port === null) throw new Error('checkpoints are made by a thread')
const { path, synchronous, log: shared } = workerData as ThreadData

/** Pages that are written again and again are brought in once for all that was committed in between. */
const everyMs = 200

try {
  const log = new WalState(shared)
  const database = new Database(path)
  database.exec(`pragma synchronous = ${synchronous}`)
  let commits = 0
  let isWhole = false
  const pass = (): void => {
    const now = log.commits
    if (isWhole && now === commits) return
    try {
      isWhole = checkpoint(database, log)
      commits = now
    } catch {
      // On a full disk it stays in the log, and is tried again.
    }
  }
  const timer = setInterval(pass, everyMs)
  const say = (reply: Reply | OpenReport) => port.postMessage(reply)
  port.on('message', (request: Request) => {
    if (request.ask !== 'close') {
      say({ call: request.call, error: encodeError(new Error(`this thread cannot ${request.ask}`)) })
      return
    }
    clearInterval(timer)
    database.close()
    say({ call: request.call, value: pack(null) })
    port.close()
  })
  say({ isOpen: true })
} catch (error) {
  port.postMessage({ isOpen: false, error: encodeError(error) } satisfies OpenReport)
  port.close()
}
