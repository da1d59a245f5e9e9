/** The body thread. Reads one body at a time, in the order of the messages. */
import { parentPort } from 'node:worker_threads'
import { checkJsonSize } from '../http/wire/json-size.ts'
import { isShownAsJson } from '../v1/values/json-payload.ts'
import { bodyReaders } from './readers.ts'
import { encodeError, prepareMove, type ThreadReply, type ThreadRequest } from './thread-messages.ts'

parentPort?.on('message', (request: ThreadRequest) => {
  const { call } = request
  try {
    const { value, moved } = prepareMove(execute(request))
    parentPort?.postMessage({ call, value } satisfies ThreadReply, moved)
  } catch (error) {
    parentPort?.postMessage({ call, error: encodeError(error) } satisfies ThreadReply)
  }
})

function execute(request: ThreadRequest): unknown {
  const { bytes } = request
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (request.ask === 'is-json') return isShownAsJson(body)
  const reader = bodyReaders.get(request.reader)
  if (reader === undefined) throw new Error(`the body thread has no reader "${request.reader}"`)
  checkJsonSize(body)
  return reader.read(body, request.facts)
}
