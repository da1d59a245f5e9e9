/**
 * Servers on one database wake each other with NOTIFY: its payload names the queues in which items became
 * available. The other servers would also find the items when they look at their queues next, so a lost
 * notification, or a listening connection that breaks, costs only a short delay.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connections } from './connections.ts'

const channel = 'redrive_available'
/** PostgreSQL accepts payloads of up to 8,000 bytes. */
const payloadBytesMax = 7_000
const reconnectMsMin = 100
const reconnectMsMax = 5_000

export type Listener = (queues: readonly string[]) => void

export class Announcements {
  readonly #connections: Connections
  readonly #self = randomUUID()
  readonly #listeners = new Set<Listener>()
  readonly #closing = new AbortController()
  #listening: Promise<void> | undefined

  constructor(connections: Connections) {
    this.#connections = connections
  }

  async announce(queues: readonly string[]): Promise<void> {
    for (const payload of splitPayloads(this.#self, queues)) {
      // A notification may be lost, so it does not wait for the disk.
      await this.#connections.read(
        {
          name: 'announce',
          text: `select set_config('synchronous_commit', 'off', true), pg_notify('${channel}', $1)`,
        },
        [payload],
      )
    }
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    this.#listening ??= this.#listen()
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#listening
  }

  async #listen(): Promise<void> {
    const { signal } = this.#closing
    for (let delayMs = reconnectMsMin; !signal.aborted; ) {
      try {
        await this.#connections.listen(channel, (payload) => this.#receive(payload), signal)
        delayMs = reconnectMsMin
      } catch {
        // The database is down. `/health` reports it, and waiting leases look at their queues periodically.
        delayMs = Math.min(delayMs * 2, reconnectMsMax)
      }
      await sleep(delayMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #receive(payload: string): void {
    const [from, ...queues] = JSON.parse(payload) as string[]
    if (from === this.#self) return
    for (const listener of this.#listeners) listener(queues)
  }
}

function splitPayloads(self: string, queues: readonly string[]): string[] {
  const payloads: string[] = []
  let names: string[] = [self]
  let bytes = 0
  for (const queue of queues) {
    const more = Buffer.byteLength(JSON.stringify(queue)) + 1
    if (bytes + more > payloadBytesMax && names.length > 1) {
      payloads.push(JSON.stringify(names))
      names = [self]
      bytes = 0
    }
    names.push(queue)
    bytes += more
  }
  if (names.length > 1) payloads.push(JSON.stringify(names))
  return payloads
}
