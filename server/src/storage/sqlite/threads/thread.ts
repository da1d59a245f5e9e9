import { Worker } from 'node:worker_threads'
import { KnownError } from '../../../errors.ts'
import {
  decodeError,
  type OpenReport,
  type Reply,
  type Request,
  type ThreadData,
  unpack,
} from './thread-messages.ts'

type ThreadName = 'writer-thread' | 'reader-thread' | 'checkpoint-thread'
type PendingCall = { resolve(value: unknown): void; reject(error: unknown): void }
type Ask = Request extends infer R ? (R extends Request ? Omit<R, 'call'> : never) : never

/**
 * A thread of the store: calls and their answers. When the thread ends, every call without an answer is
 * rejected.
 */
export class Thread {
  readonly #worker: Worker
  readonly #pending = new Map<number, PendingCall>()
  #nextCall = 1
  #ended: KnownError | undefined

  static async start(name: ThreadName, data: ThreadData): Promise<Thread> {
    // A compiled file ends in .js; in a source checkout Node runs the .ts file.
    const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const worker = new Worker(new URL(`./${name}.${suffix}`, import.meta.url), { workerData: data, name })
    const report = await new Promise<OpenReport>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      worker.once('exit', (code) => reject(new Error(`${name} ended with code ${code} before it was open`)))
    })
    if (!report.isOpen) throw decodeError(report.error)
    worker.removeAllListeners('error').removeAllListeners('exit')
    return new Thread(worker, name)
  }

  private constructor(worker: Worker, name: string) {
    this.#worker = worker
    worker.on('message', (reply: Reply) => this.#settle(reply))
    worker.on('error', (error) =>
      this.#end(new KnownError('STORE_UNAVAILABLE', `the ${name} failed: ${error}`, error)),
    )
    worker.on('exit', () => this.#end(new KnownError('STORE_UNAVAILABLE', 'the store is closed')))
  }

  ask<T>(request: Ask): Promise<T> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    const call = this.#nextCall++
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(call, { resolve: (value) => resolve(value as T), reject })
      // The block is new for each message, so it changes its owner instead of being copied.
      const moved = request.ask === 'write' ? [request.write.block.buffer] : []
      this.#worker.postMessage({ ...request, call }, moved)
    })
  }

  async close(): Promise<void> {
    if (this.#ended !== undefined) return
    const hasEnded = new Promise((resolve) => this.#worker.once('exit', resolve))
    await this.ask({ ask: 'close' })
    await hasEnded
  }

  #settle(reply: Reply): void {
    const call = this.#pending.get(reply.call)
    this.#pending.delete(reply.call)
    if ('error' in reply) call?.reject(decodeError(reply.error))
    else call?.resolve(unpack(reply.value))
  }

  #end(error: KnownError): void {
    this.#ended ??= error
    for (const call of this.#pending.values()) call.reject(error)
    this.#pending.clear()
  }
}
