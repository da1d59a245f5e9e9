import { fromDate, type Instant } from '../../core/instant.ts'
import type { Item } from '../../core/item.ts'
import type { Queue } from '../../core/queue.ts'
import { KnownError } from '../../errors.ts'
import type { StoreOptions, StoreTarget } from '../open.ts'
import type {
  Archived,
  AuditQuery,
  AuditRow,
  Command,
  CountsQuery,
  Difference,
  HeldLock,
  ItemsQuery,
  PartitionCounts,
  QueuesQuery,
  ResultsOf,
  Storage,
} from '../storage.ts'
import { nextDueAt } from './advance.ts'
import { Announcements } from './announcements.ts'
import { listAudit } from './audit.ts'
import { Connections } from './connections.ts'
import { readCounts } from './counts.ts'
import { Cursors } from './cursors.ts'
import { toKnownError } from './errors.ts'
import { Gatherer } from './gather.ts'
import { listArchive, listItems } from './list.ts'
import { migrate } from './migrate.ts'
import { getQueue, listQueues, QueueBook } from './queues.ts'
import { Slots, type Store } from './store.ts'
import { Vacuum } from './vacuum.ts'
import { reconcileCounts, verifyCounts } from './verify.ts'
import { write } from './write.ts'

const poolMaxDefault = 10
const connectTimeoutMsDefault = 10_000

export async function openPostgres(
  target: Extract<StoreTarget, { kind: 'postgres' }>,
  options: StoreOptions = {},
): Promise<Storage> {
  const random = options.random ?? Math.random
  const connections = new Connections({
    url: target.url,
    credentials: target.credentials,
    poolMax: options.postgresPoolMax ?? poolMaxDefault,
    connectTimeoutMs: options.postgresConnectTimeoutMs ?? connectTimeoutMsDefault,
  })
  const vacuum = new Vacuum(connections)
  const storage = new PostgresStorage(
    {
      vacuum,
      connections,
      random,
      book: new QueueBook(),
      cursors: new Cursors(),
      slots: new Slots(random),
    },
    () => options.clock?.now() ?? fromDate(new Date()),
  )
  try {
    await migrate(connections)
    return storage
  } catch (error) {
    await storage.close()
    throw toKnownError(error, connections.place)
  }
}

class PostgresStorage implements Storage {
  readonly kind = 'postgres'
  readonly #store: Store
  readonly #gatherer: Gatherer
  readonly #now: () => Instant
  readonly #announcements: Announcements
  readonly #underWay = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  constructor(store: Store, now: () => Instant) {
    this.#store = store
    this.#now = now
    this.#announcements = new Announcements(store.connections)
    this.#gatherer = new Gatherer((commands) => write(store, commands))
  }

  async write<const C extends readonly Command[]>(commands: C): Promise<ResultsOf<C>> {
    const results = await this.#run(() => this.#gatherer.write(commands))
    return results as unknown as ResultsOf<C>
  }

  getQueue(name: string): Promise<Queue | null> {
    return this.#run(() => getQueue(this.#store.connections, name))
  }

  listQueues(query: QueuesQuery): Promise<readonly Queue[]> {
    return this.#run(() => listQueues(this.#store.connections, query))
  }

  counts(query: CountsQuery): Promise<readonly PartitionCounts[]> {
    return this.#run(() => readCounts(this.#store.connections, query))
  }

  listItems(query: ItemsQuery): Promise<readonly Item[]> {
    return this.#run(() => listItems(this.#store.connections, query))
  }

  listArchive(query: ItemsQuery): Promise<readonly Archived[]> {
    return this.#run(() => listArchive(this.#store.connections, query))
  }

  listAudit(query: AuditQuery): Promise<readonly AuditRow[]> {
    return this.#run(() => listAudit(this.#store.connections, query))
  }

  nextDueAt(): Promise<Instant | null> {
    return this.#run(() => nextDueAt(this.#store.connections))
  }

  verify(): Promise<readonly Difference[]> {
    return this.#run(() => verifyCounts(this.#store.connections))
  }

  reconcile(lock?: HeldLock): Promise<readonly Difference[]> {
    return this.#run(() => reconcileCounts(this.#store.connections, lock, this.#now()))
  }

  announce(queues: readonly string[]): Promise<void> {
    return this.#run(() => this.#announcements.announce(queues))
  }

  onAnnounced(listener: (queues: readonly string[]) => void): () => void {
    return this.#announcements.listen(listener)
  }

  async ping(): Promise<void> {
    await this.#run(() => this.#store.connections.read({ text: 'select 1' }))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#announcements.close()
    await this.#store.vacuum.stop()
    await this.#store.connections.close()
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    const { place } = this.#store.connections
    if (this.#closing !== undefined)
      throw new KnownError('STORE_UNAVAILABLE', `the connection to ${place} is closed`)
    const running = work()
    this.#underWay.add(running)
    try {
      return await running
    } catch (error) {
      throw toKnownError(error, place)
    } finally {
      this.#underWay.delete(running)
    }
  }
}
