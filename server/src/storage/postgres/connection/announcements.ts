/**
 * How servers on one database wake each other: `notify` with the names of queues in which something
 * became available. It only hastens what the others would find by looking, so a word that is lost, or
 * a connection that breaks and is made anew, costs a moment and nothing else.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connections } from './connections.ts'

const channel = 'redrive_available'
/** PostgreSQL takes 8,000 bytes a word. */
const payloadBytesMax = 7_000
const restMsMin = 100
const restMsMax = 5_000

export type Listener = (queues: readonly string[]) => void

export class Announcements {
  readonly #connections: Connections
  readonly #self = randomUUID()
  readonly #listeners = new Set<Listener>()
  readonly #closing = new AbortController()
  #hearing: Promise<void> | undefined

  constructor(connections: Connections) {
    this.#connections = connections
  }

  async announce(queues: readonly string[]): Promise<void> {
    for (const payload of payloadsOf(this.#self, queues)) {
      // Nothing is lost with it, so nobody waits for the disk.
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
    this.#hearing ??= this.#hear()
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#hearing
  }

  async #hear(): Promise<void> {
    const { signal } = this.#closing
    for (let restMs = restMsMin; !signal.aborted; ) {
      try {
        await this.#connections.listen(channel, (payload) => this.#heard(payload), signal)
        restMs = restMsMin
      } catch {
        // The database is away: health says so, and whoever waits looks by itself meanwhile.
        restMs = Math.min(restMs * 2, restMsMax)
      }
      await sleep(restMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #heard(payload: string): void {
    const [from, ...queues] = JSON.parse(payload) as string[]
    if (from === this.#self) return
    for (const listener of this.#listeners) listener(queues)
  }
}

function payloadsOf(self: string, queues: readonly string[]): string[] {
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
