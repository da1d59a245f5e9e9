/**
 * The stores that implement the contract, and how tests get them.
 *
 * One store serves a whole test file, because a new database per test would take longer than the tests.
 * After each test, the invariants of the whole store are checked and its queues are deleted, so that the next
 * test finds it empty.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { createDatabase } from '../../../../tools/services/index.ts'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import type { NewQueue } from '../../../src/core/items/queue.ts'
import { toInstant } from '../../../src/core/time/instant.ts'
import type { Command, ResultOf, Storage } from '../../../src/storage/contract/storage.ts'
import { openStorage, type StoreOptions, type StoreTarget } from '../../../src/storage/open-storage.ts'
import { isQuick } from '../../is-quick.ts'
import { noon } from '../../make.ts'
import { expectConsistentStore } from './expect-consistent-store.ts'
import { run } from './store-reads.ts'

export type StoreName = 'SQLite file' | 'SQLite memory' | 'PostgreSQL'

/** A store that tests open, close and drop. The first open creates it. */
export interface TestStore {
  readonly name: StoreName
  readonly target: StoreTarget
  open(options?: StoreOptions): Promise<Storage>
  /** Closes and removes the store. */
  drop(): Promise<void>
}

/** `npm run test:quick` tests one store per suite: SQLite in memory, or else in a file. */
function quickStore(names: readonly StoreName[]): StoreName[] {
  const first = (['SQLite memory', 'SQLite file'] as const).find((name) => names.includes(name))
  return first === undefined ? [] : [first]
}

export const postgres = await requireService('postgres')

export async function createTestStore(name: StoreName): Promise<TestStore> {
  switch (name) {
    case 'SQLite memory':
      return toTestStore(name, { kind: 'memory' }, async () => {})
    case 'SQLite file': {
      const folder = await mkdtemp(join(tmpdir(), 'redrive-conformance-'))
      const drop = async (): Promise<void> => rm(folder, { recursive: true, force: true })
      return toTestStore(name, { kind: 'sqlite', path: join(folder, 'redrive.db') }, drop)
    }
    case 'PostgreSQL': {
      const database = await createDatabase()
      return toTestStore(name, { kind: 'postgres', url: database.url }, database.drop)
    }
  }
}

const wallClock = { now: () => toInstant(new Date()) }

function toTestStore(name: StoreName, target: StoreTarget, dropPlace: () => Promise<void>): TestStore {
  const opened: Storage[] = []
  return {
    name,
    target,
    open: async (options = {}) => {
      // Tests write commands with times of their own, which the clock of the database must not bound.
      const storage = await openStorage(target, { clock: wallClock, ...options })
      opened.push(storage)
      return storage
    },
    drop: async () => {
      // A test that failed may have left some open.
      await Promise.allSettled(opened.map((storage) => storage.close()))
      await dropPlace()
    },
  }
}

/** The open store of a test, with short functions to use it. */
export interface StoreFixture {
  readonly name: StoreName
  readonly testStore: TestStore
  readonly storage: Storage
  /** Creates a queue with a name of its own, at noon, and returns its name. */
  queue(spec?: Partial<NewQueue>): Promise<string>
  /** Writes one command. */
  run<const C extends Command>(command: C): Promise<ResultOf<C>>
}

/** A suite that runs on every store. */
export function describeStores(subject: string, body: (given: StoreFixture) => void): void {
  describeTheseStores(['SQLite memory', 'SQLite file', 'PostgreSQL'], subject, body)
}

/** A suite for the stores that outlive the process. */
export function describeDurableStores(subject: string, body: (given: StoreFixture) => void): void {
  describeTheseStores(['SQLite file', 'PostgreSQL'], subject, body)
}

export function describeTheseStores(
  names: readonly StoreName[],
  subject: string,
  body: (given: StoreFixture) => void,
): void {
  for (const name of isQuick ? quickStore(names) : names) {
    describe(`${subject} (${name})`, needsOf(name), () => {
      let testStore: TestStore | undefined
      let storage: Storage | undefined
      let queueCount = 0

      beforeAll(async () => {
        testStore = await createTestStore(name)
        storage = await testStore.open()
      })
      afterEach(async () => {
        if (storage === undefined) return
        // Delete the queues even if a check fails, so that one defect does not fail all later tests.
        await expectConsistentStore(storage).finally(() => deleteQueues(defined(storage)))
      })
      afterAll(async () => testStore?.drop())

      body({
        name,
        get testStore() {
          return defined(testStore)
        },
        get storage() {
          return defined(storage)
        },
        queue: async (spec = {}) => {
          const queue = { name: `queue-${++queueCount}`, ...spec }
          await run(defined(storage), { op: 'create-queue', queue, now: noon })
          return queue.name
        },
        run: async (command) => run(defined(storage), command),
      })
    })
  }
}

export function needsOf(name: StoreName): ReturnType<typeof needs> {
  return name === 'PostgreSQL' ? needs(postgres) : needs()
}

async function deleteQueues(storage: Storage): Promise<void> {
  const queues = await storage.listQueues({ countMax: 10_000 })
  // Queues with a dead queue come first: a dead queue that is in use cannot be deleted.
  const inOrder = [
    ...queues.filter((queue) => queue.deadQueue !== null),
    ...queues.filter((queue) => queue.deadQueue === null),
  ]
  await storage.write(inOrder.map(({ name }) => ({ op: 'delete-queue', name, isForced: true }) as const))
}

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the store is open only while a test runs')
  return value
}
