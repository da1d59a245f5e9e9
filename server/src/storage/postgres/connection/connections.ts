/**
 * The connections to the database, opened with the current credentials.
 *
 * When credentials are replaced, a new pool takes over immediately. The old pool is ended only after its last
 * borrower has returned its connection, because ending it would strand the callers that wait in its queue.
 */
import pg from 'pg'
import type { CredentialSource, Credentials } from '../../contract/credentials.ts'
import { formatHost, readHosts } from '../../contract/hosts.ts'
import type { TlsSource } from '../../contract/tls.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import {
  type Connection,
  PooledConnection,
  type Row,
  runInTransaction,
  type Statement,
  statementTimeoutMs,
} from './connection.ts'
import { type ClockSample, databaseNowSql } from './database-clock.ts'
import { isConnectionLost, isReadOnlyRefusal, isRefusedLogin, OutcomeUnknownError } from './errors.ts'
import { HostChoice } from './host-choice.ts'
import { getParser } from './parse-values.ts'
import { SharedConnection } from './shared-connection.ts'
import { type SessionState, StuckConnections } from './stuck-connections.ts'
import { type ConnectionConfig, configureConnections, createTlsSourceFromUrl } from './tls-connection.ts'

export type ConnectionOptions = Readonly<{
  url: string
  credentials: CredentialSource | undefined
  /** Undefined: as the parameters of the URL say. */
  tls?: TlsSource | undefined
  poolMax: number
  connectTimeoutMs: number
  /** The number of idle connections that stay open. */
  idleMax?: number
  /** How long a connection is used before it is replaced; 0: without limit. */
  lifetimeMs?: number
  /** PostgreSQL refuses every write of these connections. */
  isReadOnly?: boolean
  /** Called with the time of the database: for each new connection and each ping. */
  onClockSample?: (sample: ClockSample) => void
}>

/** A pool whose connections use one set of credentials. */
type CredentialPool = {
  readonly pool: pg.Pool
  readonly credentials: Credentials | undefined
  borrowers: number
  /** True: a pool with newer credentials replaced it. */
  isRetired: boolean
  /** Called when the pool is retired. */
  readonly onRetired: (() => void)[]
}

const lockTimeoutMs = 10_000
/**
 * How long the database keeps a transaction whose server sends nothing: one that is stopped, or whose
 * connection is broken. Its locks hold up every other server that needs the same rows.
 */
const idleTransactionMsMax = 9_000
/** The time limit of a ping, and of a question about sessions. */
const pingMsMax = 2_000

/**
 * A plan is made once, for a table that can be small at that time and large a minute later. So no plan may
 * read a whole table or index, as a sequential scan, a hash join or a merge join would, nor keep one in
 * memory to compare it with each row. Every statement here has an index for its lookups and looks nothing up
 * twice, so memoizing is useless. Compiling a plan costs more than running it. A database that does not wait
 * for the disk by default is overruled: nothing is acknowledged before it is durable. The database ends a
 * session whose server does not acknowledge what is sent to it for 10 s.
 */
const sessionSettings: Statement = {
  text: `select set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false), set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false), set_config('enable_memoize', 'off', false),
    set_config('enable_material', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false), set_config('bytea_output', 'hex', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('synchronous_commit',
      case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end,
      false),
    set_config('tcp_user_timeout', '10000', false), set_config('tcp_keepalives_idle', '5', false),
    set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '3', false),
    pg_backend_pid() as pid, ${databaseNowSql} as now`,
}

const readOnlySession: Statement = { text: `select set_config('default_transaction_read_only', 'on', false)` }

export const beginWrite = 'begin isolation level read committed'

export class Connections {
  /** Host, port and database, for messages. Never the password. */
  readonly address: string
  readonly #options: ConnectionOptions
  readonly #configure: (url: URL) => ConnectionConfig
  readonly #hosts: HostChoice
  readonly #stopListening: (() => void) | undefined
  #current: Promise<CredentialPool> | undefined
  readonly #open = new Set<CredentialPool>()
  /** By the text of the statement. */
  readonly #shared = new Map<string, SharedConnection>()
  readonly #stuck = new StuckConnections((pids) => this.#readSessions(pids))
  #isClosed = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    const url = new URL(options.url)
    const hosts = readHosts(url)
    this.address = `PostgreSQL at ${hosts.map(formatHost).join(', ') || formatOnlyHost(url)}${url.pathname}`
    this.#hosts = new HostChoice(hosts, options.isReadOnly !== true)
    this.#configure = configureConnections(options.tls ?? createTlsSourceFromUrl(url), this.#hosts)
    this.#stopListening = options.credentials?.onReplaced((credentials) => this.#replace(credentials))
  }

  /**
   * Runs a statement that is a transaction of its own: durable when the promise resolves. Equal statements
   * share a connection while they overlap: the next is sent before the first is answered, and executed after
   * it.
   */
  async writeStatement(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    let shared = this.#shared.get(statement.text)
    if (shared === undefined || shared.isDone) {
      shared = new SharedConnection((work) => this.use(work))
      this.#shared.set(statement.text, shared)
    }
    return shared.query(statement, values)
  }

  async read(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      return await this.use((connection) => connection.query(statement, values))
    } catch (error) {
      // The connection broke while it was idle, for example in a restart of the database. A read can be
      // repeated.
      if (!isConnectionLost(error) || this.#isClosed) throw error
      return this.use((connection) => connection.query(statement, values))
    }
  }

  async transaction<T>(begin: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.use((connection) => runInTransaction(connection, begin, () => work(connection)))
  }

  /** Borrows a connection for the work. A connection that was lost is not used again. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const pool = await this.#borrow()
    let client: pg.PoolClient | undefined
    let isBroken = false
    try {
      client = await this.#connect(pool)
      return await work(new PooledConnection(client, this.#stuck))
    } catch (error) {
      isBroken = isConnectionLost(error instanceof OutcomeUnknownError ? error.cause : error)
      if (client !== undefined && this.#hosts.mayHaveMoved && isReadOnlyRefusal(error)) {
        // The primary was made a standby without ending its connections.
        isBroken = true
        this.#retire(pool)
      }
      throw error
    } finally {
      client?.release(isBroken)
      this.#return(pool)
    }
  }

  /** Listens on a channel until the signal aborts, the connection breaks, or its credentials are replaced. */
  async listen(channel: string, onPayload: (payload: string) => void, signal: AbortSignal): Promise<void> {
    const pool = await this.#borrow()
    let client: pg.PoolClient | undefined
    try {
      client = await this.#connect(pool)
      const listening = client
      const onNotification = ({ payload }: pg.Notification) => onPayload(payload ?? '[]')
      listening.on('notification', onNotification)
      await listening.query(`listen ${channel}`)
      await new Promise<void>((resolve) => {
        pool.onRetired.push(resolve)
        listening.once('end', resolve)
        listening.once('error', resolve)
        if (signal.aborted || pool.isRetired) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      listening.off('notification', onNotification)
    } finally {
      // Destroyed, not reused: the session still listens.
      client?.release(true)
      this.#return(pool)
    }
  }

  /**
   * Resolves when the database answers, and reports its time. Uses the connections that all other work uses,
   * so that a broken one is found. If none is free, the database is only busy: then a new connection is
   * used.
   */
  async ping(): Promise<void> {
    const pool = await this.#borrow()
    this.#return(pool)
    const { idleCount, totalCount } = pool.pool
    const isBusy = idleCount === 0 && totalCount >= this.#options.poolMax
    const statement = { text: `select ${databaseNowSql} as now` }
    const sentMs = performance.now()
    const answered = isBusy ? this.#queryOnNewConnection(pool, statement.text) : this.read(statement)
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        // Other idle connections may be broken as well. New work gets new connections.
        this.#retire(pool)
        reject(new Error(`connection timeout: no answer within ${pingMsMax} ms`))
      }, pingMsMax)
    })
    answered.catch(() => {})
    const rows = await Promise.race([answered, timeout]).finally(() => clearTimeout(timer))
    this.#observeClock(rows, sentMs)
  }

  #observeClock([row = {}]: readonly Row[], sentMs: number): void {
    const databaseNow = readNumber(row, 'now')
    this.#options.onClockSample?.({ databaseNow, sentMs, receivedMs: performance.now() })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stuck.stop()
    this.#stopListening?.()
    const pools = [...this.#open]
    for (const pool of pools) this.#retire(pool)
    await Promise.all(pools.map((pool) => waitForEnd(pool.pool)))
  }

  async #connect(pool: CredentialPool): Promise<pg.PoolClient> {
    for (let attempt = 1; ; attempt++) {
      const { changes } = this.#hosts
      try {
        return await this.#connectOnce(pool)
      } catch (error) {
        // The host was given up: try the others, each at most once.
        if (attempt >= this.#hosts.count || this.#hosts.changes === changes) throw error
      }
    }
  }

  async #connectOnce(pool: CredentialPool): Promise<pg.PoolClient> {
    try {
      return await pool.pool.connect()
    } catch (error) {
      if (isRefusedLogin(error) && pool.credentials !== undefined) {
        this.#options.credentials?.onRejected?.(pool.credentials)
        // The next borrower asks for new credentials.
        this.#retire(pool)
        this.#current = undefined
      }
      throw error
    }
  }

  async #readSessions(pids: readonly number[]): Promise<ReadonlyMap<number, SessionState>> {
    const pool = await this.#borrow()
    this.#return(pool)
    try {
      const text = 'select pid, state from pg_stat_activity where pid = any($1)'
      const rows = await this.#queryOnNewConnection(pool, text, [pids])
      return new Map(rows.map((row) => [readNumber(row, 'pid'), toSessionState(row.state)]))
    } catch (error) {
      if (isConnectionLost(error)) throw error
      // The database answers, but refuses the question, for example because it has no connection left.
      return new Map(pids.map((pid) => [pid, 'executing']))
    }
  }

  async #queryOnNewConnection(
    pool: CredentialPool,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    const { options } = pool.pool
    // The class of the pool's connections, which negotiates TLS.
    const Client = (options.Client ?? pg.Client) as new (config: pg.ClientConfig) => pg.Client
    const client = new Client({
      ...options,
      connectionTimeoutMillis: pingMsMax,
      query_timeout: pingMsMax,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Row>(text, [...values])).rows
    } finally {
      client.end().catch(() => {})
    }
  }

  async #borrow(): Promise<CredentialPool> {
    if (this.#isClosed) throw new Error('connection ended: the store is closed')
    this.#current ??= this.#createPool()
    let pool: CredentialPool
    try {
      pool = await this.#current
    } catch (error) {
      this.#current = undefined
      throw error
    }
    // The pool was retired while this call waited for it. Take its successor.
    if (pool.isRetired) {
      if ((await this.#current) === pool) this.#current = undefined
      return this.#borrow()
    }
    pool.borrowers++
    return pool
  }

  #return(pool: CredentialPool): void {
    pool.borrowers--
    if (pool.isRetired && pool.borrowers === 0) this.#end(pool)
  }

  #retire(pool: CredentialPool): void {
    if (pool.isRetired) return
    pool.isRetired = true
    for (const notify of pool.onRetired.splice(0)) notify()
    if (pool.borrowers === 0) this.#end(pool)
  }

  #end(pool: CredentialPool): void {
    this.#open.delete(pool)
    // A connection that breaks while it is closed needs no more attention.
    pool.pool.end().catch(() => {})
  }

  #replace(credentials: Credentials): void {
    if (this.#isClosed) return
    const before = [...this.#open]
    this.#current = Promise.resolve(this.#createPoolWith(credentials))
    for (const pool of before) this.#retire(pool)
  }

  async #createPool(): Promise<CredentialPool> {
    const credentials = await this.#options.credentials?.getCurrent()
    return this.#createPoolWith(credentials)
  }

  #createPoolWith(credentials: Credentials | undefined): CredentialPool {
    const url = new URL(this.#options.url)
    if (credentials !== undefined) {
      // As parameters: a URL without a host, as for a Unix socket, cannot have a user.
      url.searchParams.set('user', credentials.user)
      url.searchParams.set('password', credentials.password)
    }
    const pool = new pg.Pool({
      ...this.#configure(url),
      max: this.#options.poolMax,
      connectionTimeoutMillis: this.#options.connectTimeoutMs,
      idleTimeoutMillis: 60_000,
      min: this.#options.idleMax ?? 0,
      maxLifetimeSeconds: Math.ceil((this.#options.lifetimeMs ?? 0) / 1_000),
      application_name: 'redrive',
      keepAlive: true,
      pipeline: true,
      statement_timeout: statementTimeoutMs,
      lock_timeout: lockTimeoutMs,
      idle_in_transaction_session_timeout: idleTransactionMsMax,
      types: { getTypeParser: getParser as typeof pg.types.getTypeParser },
      onConnect: async (client) => {
        const query = { text: sessionSettings.text, query_timeout: this.#options.connectTimeoutMs }
        const sentMs = performance.now()
        const { rows } = await client.query<Row>(query)
        this.#observeClock(rows, sentMs)
        this.#stuck.watch(client as pg.PoolClient, readNumber(rows[0] ?? {}, 'pid'))
        if (this.#options.isReadOnly === true) await client.query(readOnlySession.text)
      },
    })
    // An idle connection that breaks is removed from the pool; the next borrower gets a new one.
    pool.on('error', () => {})
    // A borrowed connection that breaks fails its current query, and so its caller.
    pool.on('connect', (client) => client.on('error', () => {}))
    const created: CredentialPool = { pool, credentials, borrowers: 0, isRetired: false, onRetired: [] }
    this.#open.add(created)
    return created
  }
}

/** The state of a session of another database user is not visible: assume that it executes our statement. */
function toSessionState(state: unknown): SessionState {
  return state === 'active' || state === null ? 'executing' : 'not executing'
}

function formatOnlyHost(url: URL): string {
  const host = decodeURIComponent(url.hostname) || url.searchParams.get('host') || 'localhost'
  return `${host}:${url.port || 5432}`
}

async function waitForEnd(pool: pg.Pool): Promise<void> {
  while (!pool.ended) await new Promise((resolve) => setTimeout(resolve, 5))
}
