/**
 * The body thread does the work that is proportional to a large body: decoding, parsing, validation and
 * conversion. The server's thread answers other requests in the meantime, and receives a small tree of values
 * whose bytes are not copied. There is one thread, which starts with the first large body.
 */
import { Worker } from 'node:worker_threads'
import { KnownError } from '../../errors.ts'
import type { BodyFacts, BodyReader } from '../http/bodies/body-reader.ts'
import { decodeError, type ThreadReply, type ThreadRequest } from './thread-messages.ts'

/** Bodies and payloads from this size on are read by the thread. */
export const threadBytesMin = 64 * 1_024

export interface BodyThread extends AsyncDisposable {
  /** Reads a body. Its memory moves to the thread: the caller must not use `bytes` any more. */
  read<T>(reader: BodyReader<T>, bytes: Buffer, facts: BodyFacts): Promise<T>
  /** Whether the bytes are JSON that can be shown: with a limited number of values and a limited depth. */
  isJson(bytes: Uint8Array): Promise<boolean>
  close(): Promise<void>
}

type Pending = { resolve(value: unknown): void; reject(error: unknown): void }
type Ask = ThreadRequest extends infer R ? (R extends ThreadRequest ? Omit<R, 'call'> : never) : never

/**
 * The heap of the thread. A body whose values need more ends the thread, not the server. The bytes of bodies
 * and payloads are outside of this heap.
 */
const heapMbMaxDefault = 320
const youngHeapMbMax = 32

export function createBodyThread({ heapMbMax = heapMbMaxDefault } = {}): BodyThread {
  let running: Running | undefined
  let calls = 0

  const start = (): Running => {
    const started = startThread(heapMbMax)
    const forget = (): void => {
      if (running === started) running = undefined
    }
    started.worker.once('error', forget)
    started.worker.once('exit', forget)
    return started
  }
  const ask = <T>(request: Ask, moved: readonly ArrayBuffer[]): Promise<T> => {
    running ??= start()
    const { worker, pending } = running
    const call = ++calls
    return new Promise<T>((resolve, reject) => {
      pending.set(call, { resolve: (value) => resolve(value as T), reject })
      worker.postMessage({ ...request, call }, moved)
    })
  }
  const close = async (): Promise<void> => {
    const ended = running
    running = undefined
    await ended?.worker.terminate()
  }

  return {
    read: ({ name }, bytes, facts) => {
      const own = copyToOwnBuffer(bytes)
      return ask({ ask: 'read', reader: name, bytes: own, facts }, [own.buffer])
    },
    isJson: (bytes) => {
      const copy = new Uint8Array(bytes)
      return ask({ ask: 'is-json', bytes: copy }, [copy.buffer])
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A thread and the calls that it has not answered, the oldest first. */
type Running = Readonly<{ worker: Worker; pending: Map<number, Pending> }>

function startThread(heapMbMax: number): Running {
  const pending = new Map<number, Pending>()
  // A compiled file ends in .js; in a source checkout Node runs the .ts file.
  const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./entry.${suffix}`, import.meta.url), {
    name: 'body-thread',
    resourceLimits: { maxOldGenerationSizeMb: heapMbMax, maxYoungGenerationSizeMb: youngHeapMbMax },
  })
  worker.unref()
  worker.on('message', (reply: ThreadReply) => {
    const call = pending.get(reply.call)
    pending.delete(reply.call)
    if ('error' in reply) call?.reject(decodeError(reply.error))
    else call?.resolve(reply.value)
  })
  // The thread reads one body at a time, so the first of the waiting ones ended it. The others can be sent
  // again.
  const fail = (error: Error & { code?: string }): void => {
    const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    for (const [index, { reject }] of [...pending.values()].entries()) {
      reject(index === 0 && isMemory ? needsTooMuchMemory(error) : createInterruptedError(error))
    }
    pending.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the body thread has ended')))
  return { worker, pending }
}

/** Only memory that nothing else uses can move to the thread. Node keeps small buffers in a shared pool. */
function copyToOwnBuffer(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = bytes
  const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
  return isAlone ? new Uint8Array(buffer) : new Uint8Array(bytes)
}

function needsTooMuchMemory(cause: unknown): KnownError {
  return new KnownError(
    'BODY_TOO_LARGE',
    'reading the body needs too much memory; send fewer items per request, or payloads as text',
    cause,
  )
}

function createInterruptedError(cause: unknown): KnownError {
  return new KnownError(
    'SERVER_OVERLOADED',
    'the server is overloaded: reading the body was interrupted',
    cause,
  )
}
