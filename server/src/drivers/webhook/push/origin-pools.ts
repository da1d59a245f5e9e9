/** Connections by origin, bounded: the least recently used origins without a push in progress close first. */
import type { Socket } from 'node:net'
import { type buildConnector, Client, Pool } from 'undici'
import { type Connection, PushHandler } from './push-handler.ts'

export type OriginPool = {
  readonly origin: string
  readonly pool: Pool
  /** Pushes that use or wait for a connection. */
  inProgress: number
  sockets: number
}

export type PoolBounds = Readonly<{
  connectionsPerOriginMax: number
  originsMax: number
  idleSocketsMax: number
  idleTimeoutMs: number
}>

/** Creates the connector of an origin. `onOpen` is called with each socket. */
export type CreateConnector = (onOpen: (socket: Socket) => void) => buildConnector.connector

/** Tells each push which connection it uses: undici itself does not report it. */
class TrackedClient extends Client {
  readonly #connection: Connection

  constructor(origin: URL, options: Client.Options, connect: buildConnector.connector) {
    const connection: Connection = { address: null }
    super(origin, {
      ...options,
      connect: (target, callback) =>
        connect(target, (...[error, socket]) => {
          connection.address = socket?.remoteAddress ?? null
          if (error === null) callback(null, socket)
          else callback(error, null)
        }),
    })
    this.#connection = connection
  }

  override dispatch(...[options, handler]: Parameters<Client['dispatch']>): boolean {
    if (handler instanceof PushHandler) handler.connection = this.#connection
    return super.dispatch(options, handler)
  }
}

export class OriginPools {
  readonly #bounds: PoolBounds
  readonly #createConnector: CreateConnector
  /** In order of use, the least recently used first. */
  readonly #pools = new Map<string, OriginPool>()
  readonly #closing = new Set<Promise<void>>()
  #sockets = 0
  #inProgress = 0

  constructor(bounds: PoolBounds, createConnector: CreateConnector) {
    this.#bounds = bounds
    this.#createConnector = createConnector
  }

  /** The caller calls `release` once the push uses no connection any more. */
  acquire(origin: string): OriginPool {
    const entry = this.#pools.get(origin) ?? this.#create(origin)
    this.#pools.delete(origin)
    this.#pools.set(origin, entry)
    entry.inProgress += 1
    this.#inProgress += 1
    return entry
  }

  release(entry: OriginPool): void {
    entry.inProgress -= 1
    this.#inProgress -= 1
    this.#closeSurplus()
    if (entry.sockets === 0 && entry.inProgress === 0) this.#close(entry)
  }

  counts(): Readonly<{ origins: number; sockets: number; inProgress: number }> {
    return { origins: this.#pools.size, sockets: this.#sockets, inProgress: this.#inProgress }
  }

  async close(): Promise<void> {
    for (const entry of this.#pools.values()) this.#close(entry)
    await Promise.all(this.#closing)
  }

  #create(origin: string): OriginPool {
    const onOpen = (socket: Socket): void => {
      this.#sockets += 1
      entry.sockets += 1
      socket.once('close', () => {
        this.#sockets -= 1
        entry.sockets -= 1
        if (entry.sockets === 0 && entry.inProgress === 0) this.#close(entry)
      })
      this.#closeSurplus()
    }
    const connect = this.#createConnector(onOpen)
    const { connectionsPerOriginMax, idleTimeoutMs } = this.#bounds
    const pool = new Pool(origin, {
      connections: connectionsPerOriginMax,
      keepAliveTimeout: idleTimeoutMs,
      keepAliveMaxTimeout: idleTimeoutMs,
      // PushHandler has its own timers.
      headersTimeout: 0,
      bodyTimeout: 0,
      factory: (url, options) => new TrackedClient(url, options, connect),
    })
    const entry: OriginPool = { origin, pool, inProgress: 0, sockets: 0 }
    this.#pools.set(origin, entry)
    return entry
  }

  #closeSurplus(): void {
    const { originsMax, idleSocketsMax } = this.#bounds
    const isOver = () => this.#pools.size > originsMax || this.#sockets - this.#inProgress > idleSocketsMax
    if (!isOver()) return
    for (const entry of this.#pools.values()) {
      if (entry.inProgress === 0) this.#close(entry)
      if (!isOver()) return
    }
  }

  #close(entry: OriginPool): void {
    if (this.#pools.get(entry.origin) !== entry) return
    this.#pools.delete(entry.origin)
    const closed = entry.pool.close().finally(() => this.#closing.delete(closed))
    this.#closing.add(closed)
  }
}
