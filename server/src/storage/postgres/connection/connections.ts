/**
 * Connections to the database, made with whatever credentials are current.
 *
 * When credentials are replaced, a new pool takes over at once. The old one is ended only after its
 * last borrower is done, because ending a pool would strand those that wait in its queue.
 */
import pg from 'pg'
import type { CredentialSource, Credentials } from '../../contract/credentials.ts'
import { CopyQuery } from './copy-query.ts'
import { isConnectionLost, isRefusedLogin, OutcomeUnknownError } from './errors.ts'
import { PreparedQuery, RawRowsQuery } from './prepared-query.ts'

export type Row = Record<string, unknown>
/**
 * Named ones are parsed once per connection. `isLong`: may take as long as it takes. `isListed`: rows come
 * as lists of values as PostgreSQL writes them, in the order of the columns.
 */
export type Statement = Readonly<{ name?: string; text: string; isLong?: true; hasRawRows?: true }>

const preparedMax = 200
const preparedNames = new Map<string, string>()

/**
 * A statement that is put together, of which there are only so many: planned once per connection, like one
 * that has a name. Beyond that many each is planned when it is sent.
 */
export function prepared(text: string): Statement {
  const known = preparedNames.get(text)
  if (known !== undefined) return { name: known, text }
  if (preparedNames.size >= preparedMax) return { text }
  const name = `made-${preparedNames.size + 1}`
  preparedNames.set(text, name)
  return { name, text }
}

export interface Connection {
  query(statement: Statement, values?: readonly unknown[]): Promise<Row[]>
  /** See copy-rows.ts. */
  copy(text: string, messages: readonly Buffer[]): Promise<void>
}

export type ConnectionOptions = Readonly<{
  url: string
  credentials: CredentialSource | undefined
  poolMax: number
  connectTimeoutMs: number
}>

type Pool = {
  readonly pool: pg.Pool
  readonly credentials: Credentials | undefined
  borrowers: number
  isRetired: boolean
  /** Told when nobody should start with it any more. */
  readonly whenRetired: (() => void)[]
}

const statementTimeoutMs = 60_000
const lockTimeoutMs = 20_000
/** Longer than the database lets a statement run: only a network that swallows answers takes this long. */
const answerTimeoutMs = statementTimeoutMs + 10_000
/** Well below the time that credentials overlap. */
const lentMsMax = 1_000
const longAnswerTimeoutMs = 24 * 3_600_000

/**
 * A plan is made once, for a table that may be small then and large a minute later: so none may read a
 * whole table or a whole index, as a sequential scan, a hash join or a merge join would, or keep it in memory
 * to compare it with each row. Every statement here has an index for what it looks up, and looks nothing up
 * twice, so that remembering it is in vain. Compiling a plan costs more than running it. A database whose
 * default is not to wait for the disk is overruled: nothing is acknowledged before it is durable.
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
      false)`,
}

export const beginWrite = 'begin isolation level read committed'

export class Connections {
  /** Host, port and database, for messages. Never the password. */
  readonly address: string
  readonly #options: ConnectionOptions
  readonly #stopListening: (() => void) | undefined
  #current: Promise<Pool> | undefined
  readonly #open = new Set<Pool>()
  readonly #lent = new Map<string, SharedConnection>()
  #isClosed = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    const url = new URL(options.url)
    const host = decodeURIComponent(url.hostname) || url.searchParams.get('host') || 'localhost'
    this.address = `PostgreSQL at ${host}:${url.port || 5432}${url.pathname}`
    this.#stopListening = options.credentials?.onReplaced((credentials) => this.#replace(credentials))
  }

  /**
   * One statement by itself: durable when it resolves. Equal ones share a connection while they
   * overlap: the next is sent before the first is answered, and obeyed after it.
   */
  async writeStatement(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    let lent = this.#lent.get(statement.text)
    if (lent === undefined || lent.isDone) {
      lent = new SharedConnection((work) => this.use(work))
      this.#lent.set(statement.text, lent)
    }
    return lent.query(statement, values)
  }

  async read(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      return await this.use((connection) => connection.query(statement, values))
    } catch (error) {
      // A connection that broke while it was idle, e.g. when the database was restarted: reading
      // again on a fresh one is harmless.
      if (!isConnectionLost(error) || this.#isClosed) throw error
      return this.use((connection) => connection.query(statement, values))
    }
  }

  async transaction<T>(begin: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.use((connection) => runInTransaction(connection, begin, () => work(connection)))
  }

  /** Lends a connection. One whose work failed in a way that leaves it unclear is not used again. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const pool = await this.#borrow()
    let client: pg.PoolClient | undefined
    let isBroken = false
    try {
      client = await this.#connect(pool)
      return await work(new PooledConnection(client))
    } catch (error) {
      isBroken = isConnectionLost(error instanceof OutcomeUnknownError ? error.cause : error)
      throw error
    } finally {
      client?.release(isBroken)
      this.#giveBack(pool)
    }
  }

  /** Hears a channel until the signal aborts, the connection breaks, or its credentials are replaced. */
  async listen(channel: string, onPayload: (payload: string) => void, signal: AbortSignal): Promise<void> {
    const pool = await this.#borrow()
    let client: pg.PoolClient | undefined
    try {
      client = await this.#connect(pool)
      const heard = client
      const onNotification = ({ payload }: pg.Notification) => onPayload(payload ?? '[]')
      heard.on('notification', onNotification)
      await heard.query(`listen ${channel}`)
      await new Promise<void>((resolve) => {
        pool.whenRetired.push(resolve)
        heard.once('end', resolve)
        heard.once('error', resolve)
        if (signal.aborted || pool.isRetired) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      heard.off('notification', onNotification)
    } finally {
      // Not given back to others: it still hears.
      client?.release(true)
      this.#giveBack(pool)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopListening?.()
    const pools = [...this.#open]
    for (const pool of pools) this.#retire(pool)
    await Promise.all(pools.map((pool) => waitForEnd(pool.pool)))
  }

  async #connect(pool: Pool): Promise<pg.PoolClient> {
    try {
      return await pool.pool.connect()
    } catch (error) {
      if (isRefusedLogin(error) && pool.credentials !== undefined) {
        this.#options.credentials?.rejected?.(pool.credentials)
        // The next borrower asks for credentials anew.
        this.#retire(pool)
        this.#current = undefined
      }
      throw error
    }
  }

  async #borrow(): Promise<Pool> {
    if (this.#isClosed) throw new Error('connection ended: the store is closed')
    this.#current ??= this.#make()
    let pool: Pool
    try {
      pool = await this.#current
    } catch (error) {
      this.#current = undefined
      throw error
    }
    // Retired between the asking and the having: its successor is there.
    if (pool.isRetired) {
      if ((await this.#current) === pool) this.#current = undefined
      return this.#borrow()
    }
    pool.borrowers++
    return pool
  }

  #giveBack(pool: Pool): void {
    pool.borrowers--
    if (pool.isRetired && pool.borrowers === 0) this.#end(pool)
  }

  #retire(pool: Pool): void {
    if (pool.isRetired) return
    pool.isRetired = true
    for (const tell of pool.whenRetired.splice(0)) tell()
    if (pool.borrowers === 0) this.#end(pool)
  }

  #end(pool: Pool): void {
    this.#open.delete(pool)
    // A connection that breaks while it is being closed is closed.
    pool.pool.end().catch(() => {})
  }

  #replace(credentials: Credentials): void {
    if (this.#isClosed) return
    const before = [...this.#open]
    this.#current = Promise.resolve(this.#makeWith(credentials))
    for (const pool of before) this.#retire(pool)
  }

  async #make(): Promise<Pool> {
    const credentials = await this.#options.credentials?.current()
    return this.#makeWith(credentials)
  }

  #makeWith(credentials: Credentials | undefined): Pool {
    const url = new URL(this.#options.url)
    if (credentials !== undefined) {
      url.username = encodeURIComponent(credentials.user)
      url.password = encodeURIComponent(credentials.password)
    }
    const pool = new pg.Pool({
      connectionString: url.href,
      max: this.#options.poolMax,
      connectionTimeoutMillis: this.#options.connectTimeoutMs,
      idleTimeoutMillis: 60_000,
      application_name: 'redrive',
      keepAlive: true,
      pipeline: true,
      statement_timeout: statementTimeoutMs,
      lock_timeout: lockTimeoutMs,
      idle_in_transaction_session_timeout: statementTimeoutMs,
      types: { getTypeParser: parserFor as typeof pg.types.getTypeParser },
      onConnect: async (client) => {
        await client.query(sessionSettings.text)
      },
    })
    // An idle connection that breaks is removed from the pool; the next borrower gets a new one.
    pool.on('error', () => {})
    // One that breaks while it is lent fails the query under way, which tells whoever waits for it.
    pool.on('connect', (client) => client.on('error', () => {}))
    const made: Pool = { pool, credentials, borrowers: 0, isRetired: false, whenRetired: [] }
    this.#open.add(made)
    return made
  }
}

/**
 * A connection that several share. It is lent when the first comes and given back when the last is done,
 * when one fails, or after a while, so that a busy one also follows when credentials are replaced.
 */
class SharedConnection {
  isDone = false
  readonly #borrowed: Promise<Connection>
  readonly #until = performance.now() + lentMsMax
  #users = 0
  #lost: unknown
  #giveBack: () => void = () => {}

  constructor(use: (work: (connection: Connection) => Promise<void>) => Promise<void>) {
    this.#borrowed = new Promise((resolve, reject) => {
      use((connection) => {
        resolve(connection)
        return new Promise((done, failed) => {
          this.#giveBack = () => (this.#lost === undefined ? done() : failed(this.#lost))
        })
      }).catch(reject)
    })
  }

  async query(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    this.#users++
    let isSent = false
    try {
      const connection = await this.#borrowed
      isSent = true
      return await connection.query(statement, values)
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      this.#lost ??= error
      this.isDone = true
      throw isSent ? new OutcomeUnknownError(error) : error
    } finally {
      this.#users--
      if (this.#users === 0 || performance.now() > this.#until) this.isDone = true
      if (this.#users === 0) this.#giveBack()
    }
  }
}

/** All of the work, or nothing of it. */
export async function runInTransaction<T>(
  connection: Connection,
  begin: string,
  work: () => Promise<T>,
): Promise<T> {
  await connection.query({ text: begin })
  let result: T
  try {
    result = await work()
  } catch (error) {
    if (!isConnectionLost(error)) await connection.query({ text: 'rollback' })
    throw error
  }
  try {
    await connection.query({ text: 'commit' })
  } catch (error) {
    throw isConnectionLost(error) ? new OutcomeUnknownError(error) : error
  }
  return result
}

class PooledConnection implements Connection {
  readonly #client: pg.PoolClient

  constructor(client: pg.PoolClient) {
    this.#client = client
  }

  query(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    const timeoutMs = statement.isLong === true ? longAnswerTimeoutMs : answerTimeoutMs
    return new Promise((resolve, reject) => {
      const done = (error: Error | undefined, rows: Row[]) => (error ? reject(error) : resolve(rows))
      const Sent = statement.hasRawRows === true ? RawRowsQuery : PreparedQuery
      this.#client.query(new Sent(statement, values, timeoutMs, done))
    })
  }

  copy(text: string, messages: readonly Buffer[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error: Error | undefined) => (error ? reject(error) : resolve())
      this.#client.query(new CopyQuery(text, messages, answerTimeoutMs, done))
    })
  }
}

async function waitForEnd(pool: pg.Pool): Promise<void> {
  while (!pool.ended) await new Promise((resolve) => setTimeout(resolve, 5))
}

const parsers = new Map<number, (text: string) => unknown>([
  [16, (text) => text === 't'],
  [17, parseBytes],
  [20, Number],
  [21, Number],
  [23, Number],
])

/** Ours alone: `pg.types` is shared with everybody in the process. 64-bit numbers fit, see core/instant.ts. */
function parserFor(oid: number): (text: string) => unknown {
  return parsers.get(oid) ?? String
}

/** As PostgreSQL writes bytes. */
export function parseBytes(text: string): Uint8Array {
  const bytes = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
