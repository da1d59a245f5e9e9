/**
 * Finds connections whose answers do not arrive, and ends them.
 *
 * A connection can be half-open: a firewall or a network failure dropped it, and neither side was notified.
 * A statement that was sent over it would wait until its time limit. A time limit cannot be short, because a
 * statement on a busy database can take long. So the database is asked, over a new connection, what it does
 * for the session: a session that executes our statement is only slow; one that is idle or gone has answered
 * already, and the answer is lost. If the database cannot be asked, all silent connections are ended.
 */
import type { PoolClient } from 'pg'

/** Whether the database executes a statement of a session. */
export type SessionState = 'executing' | 'not executing'
/** Asks the database about sessions. A session that is missing in the result does not exist. */
export type AskSessions = (pids: readonly number[]) => Promise<ReadonlyMap<number, SessionState>>

/** A connection that waits this long for an answer is checked, and checked again after this time. */
const silentMsMax = 2_500
const checkEveryMs = 500
/** An answer that was sent before the database was asked arrives within this time. */
const arrivalMsMax = 250

type WatchedConnection = {
  readonly client: PoolClient
  /** Process id of the session in the database. */
  readonly pid: number
  /** Statements without an answer. */
  pending: number
  /** When the oldest of them was sent, the latest answer arrived, or the session was found executing. */
  activeAtMs: number
}

/** The parts of the socket that show progress. `pg` does not type them. */
type Socket = Readonly<{ bytesRead: number; writableLength: number; destroy(error: Error): void }>

export class StuckConnections {
  readonly #ask: AskSessions
  readonly #watched = new Map<PoolClient, WatchedConnection>()
  readonly #timer: NodeJS.Timeout
  #checking: Promise<void> | undefined

  constructor(ask: AskSessions) {
    this.#ask = ask
    this.#timer = setInterval(() => {
      this.#checking ??= this.check().finally(() => {
        this.#checking = undefined
      })
    }, checkEveryMs)
    this.#timer.unref()
  }

  watch(client: PoolClient, pid: number): void {
    this.#watched.set(client, { client, pid, pending: 0, activeAtMs: 0 })
    client.once('end', () => this.#watched.delete(client))
  }

  noteSent(client: PoolClient): void {
    const watched = this.#watched.get(client)
    if (watched === undefined) return
    if (watched.pending === 0) watched.activeAtMs = performance.now()
    watched.pending++
  }

  noteAnswered(client: PoolClient): void {
    const watched = this.#watched.get(client)
    if (watched === undefined) return
    watched.pending--
    watched.activeAtMs = performance.now()
  }

  /** Ends the connections whose answers were lost. */
  async check(): Promise<void> {
    const dueMs = performance.now() - silentMsMax
    const silent = [...this.#watched.values()].filter(
      ({ pending, activeAtMs }) => pending > 0 && activeAtMs <= dueMs,
    )
    if (silent.length === 0) return
    const before = silent.map((watched) => readProgress(watched))
    const sessions = await this.#ask(silent.map(({ pid }) => pid)).catch(() => undefined)
    const suspects = silent.flatMap((watched, index) => {
      if (sessions?.get(watched.pid) !== 'executing') return [{ watched, progress: before[index] }]
      watched.activeAtMs = performance.now()
      return []
    })
    if (suspects.length === 0) return
    await new Promise((resolve) => setTimeout(resolve, arrivalMsMax))
    for (const { watched, progress } of suspects) {
      // An answer arrived, or the statement is still being sent.
      if (readProgress(watched) !== progress) continue
      const { pid } = watched
      getSocket(watched).destroy(
        new Error(`connection terminated: session ${pid} did not answer for ${silentMsMax} ms`),
      )
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

function readProgress(watched: WatchedConnection): string {
  const { bytesRead, writableLength } = getSocket(watched)
  return `${watched.pending > 0} ${bytesRead} ${writableLength}`
}

function getSocket({ client }: WatchedConnection): Socket {
  return (client as unknown as Readonly<{ connection: Readonly<{ stream: Socket }> }>).connection.stream
}
