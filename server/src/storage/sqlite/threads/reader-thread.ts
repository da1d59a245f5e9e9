/** The thread that owns a reading connection, so that a long list never delays a commit. */
import { parentPort, workerData } from 'node:worker_threads'
import { Database } from '../connection/database.ts'
import { read } from './read.ts'
import {
  encodeError,
  listMoved,
  type OpenReport,
  pack,
  type Reply,
  type Request,
  type ThreadData,
} from './thread-messages.ts'

const port = parentPort
if (port === null) throw new Error('the reader runs as a thread')
const { path } = workerData as ThreadData

try {
  const database = new Database(path, { isReadOnly: true })
  database.exec('pragma cache_size = -65536; pragma temp_store = memory')
  const reply = (message: Reply | OpenReport) => port.postMessage(message, listMoved(message))
  port.on('message', (request: Request) => {
    try {
      if (request.ask === 'read') {
        return reply({ call: request.call, value: pack(read(database, request.what)) })
      }
      if (request.ask !== 'close') throw new Error(`the reader cannot ${request.ask}`)
      database.close()
      reply({ call: request.call, value: pack(null) })
      port.close()
    } catch (error) {
      reply({ call: request.call, error: encodeError(error) })
    }
  })
  reply({ isOpen: true })
} catch (error) {
  port.postMessage({ isOpen: false, error: encodeError(error) } satisfies OpenReport)
  port.close()
}
