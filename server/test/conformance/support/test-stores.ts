/**
 * The three stores that keep the contract, and how tests get one.
 *
 * One store serves a whole test file, because a fresh database per test would cost more than all of
 * the tests. After each test the oracle looks at everything in it, then the test's queues are deleted:
 * the next one finds it empty.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { createDatabase } from '../../../../tools/services/index.ts'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import type { NewQueue } from '../../../src/core/queue.ts'
import type { Command, ResultOf, Storage } from '../../../src/storage/contract/storage.ts'
import { openStorage, type StoreOptions, type StoreTarget } from '../../../src/storage/open-storage.ts'
import { noon } from '../../make.ts'
import { expectConsistentStore } from './expect-consistent-store.ts'
import { run } from './store-reads.ts'

export type StoreName = 'SQLite file' | 'SQLite memory' | 'PostgreSQL'

/** Where one store lives. Nothing is there until it is first opened. */
export interface TestStore {
  readonly name: StoreName
  readonly target: StoreTarget
  open(options?: StoreOptions): Promise<Storage>
  /** Removes it for good, open or not. */
  drop(): Promise<void>
}

/** `npm run test:quick` tests one store per suite: SQLite in memory, or else in a file. */
const isQuick = process.env.REDRIVE_TEST_QUICK === 'true'

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

function toTestStore(name: StoreName, target: StoreTarget, dropPlace: () => Promise<void>): TestStore {
  const opened: Storage[] = []
  return {
    name,
    target,
    open: async (options = {}) => {
      const storage = await openStorage(target, options)
      opened.push(storage)
      return storage
    },
    drop: async () => {
      // Closed after the fact: a test that failed half-way may have left some open.
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

/** Describes what every store must do. */
export function describeStores(subject: string, body: (given: StoreFixture) => void): void {
  describeTheseStores(['SQLite memory', 'SQLite file', 'PostgreSQL'], subject, body)
}

/** Only the stores that outlive the process. */
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
      let queuesMade = 0

      beforeAll(async () => {
        testStore = await createTestStore(name)
        storage = await testStore.open()
      })
      afterEach(async () => {
        if (storage === undefined) return
        // Emptied even if unsound, so that one defect does not fail every test after it.
        await expectConsistentStore(storage).finally(() => deleteQueues(there(storage)))
      })
      afterAll(async () => testStore?.drop())

      body({
        name,
        get testStore() {
          return there(testStore)
        },
        get storage() {
          return there(storage)
        },
        queue: async (spec = {}) => {
          const queue = { name: `queue-${++queuesMade}`, ...spec }
          await run(there(storage), { op: 'create-queue', queue, now: noon })
          return queue.name
        },
        run: async (command) => run(there(storage), command),
      })
    })
  }
}

export function needsOf(name: StoreName): ReturnType<typeof needs> {
  return name === 'PostgreSQL' ? needs(postgres) : needs()
}

async function deleteQueues(storage: Storage): Promise<void> {
  const queues = await storage.listQueues({ countMax: 10_000 })
  // First those that name a dead queue: a dead queue in use cannot be deleted.
  const inOrder = [
    ...queues.filter((queue) => queue.deadQueue !== null),
    ...queues.filter((queue) => queue.deadQueue === null),
  ]
  await storage.write(inOrder.map(({ name }) => ({ op: 'delete-queue', name, isForced: true }) as const))
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the store is there only while a test runs')
  return value
}
