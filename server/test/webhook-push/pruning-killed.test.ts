import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { usPerSecond } from '../../src/core/time/instant.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { run as write } from '../conformance/support/store-reads.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { createWebhookActions } from '../conformance/support/webhook-actions.ts'
import { noon } from '../make.ts'
import { repeats } from '../random-test.ts'
import type { PruneTask } from './processes/prune.ts'

/** REDRIVE_TEST_SEEDS=50 kills 50 times. */
const kills = repeats(3)
const points = ['before-lines', 'after-lines', 'after-rows'] as const

describe.each(['SQLite file', 'PostgreSQL'] as const)('pruning that is killed (%s)', (name) => {
  let store: TestStore
  let folder: string
  beforeEach(async () => {
    store = await createTestStore(name)
    folder = await mkdtemp(join(tmpdir(), 'redrive-export-'))
  })
  afterEach(async () => {
    await store.drop()
    await rm(folder, { recursive: true })
  })

  /** The store is open only here: a file has one server at a time. */
  const withStorage = async <T>(work: (storage: Storage) => Promise<T>): Promise<T> => {
    const storage = await store.open()
    try {
      return await work(storage)
    } finally {
      await storage.close()
    }
  }
  const broadcastAndDeliver = (ids: readonly string[]) =>
    withStorage(async (storage) => {
      const actions = createWebhookActions({ storage, run: (command) => write(storage, command) })
      await actions.channel('c')
      const { queue } = await actions.consumer('c', 'k')
      for (const id of ids) await actions.broadcast('c', id)
      const holders = ids.map(() => 'w')
      const jobs = await write(storage, { op: 'lease', queue, partition: 0, holders, now: noon })
      const done = jobs.map(({ id }) => id)
      await write(storage, { op: 'complete', queue, partition: 0, ids: done, now: noon })
    })
  const prune = async (kill: PruneTask['kill']) => {
    const script = fileURLToPath(new URL('./processes/prune.ts', import.meta.url))
    // The same server after a restart: the lock of another server would end after minutes.
    const now = noon + 100 * usPerSecond
    const task: PruneTask = { store: store.target, folder, owner: 'node', now, kill }
    const child = spawn(process.execPath, [script, JSON.stringify(task)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const [code, signal] = await once(child, 'exit')
    return signal ?? code
  }
  const readExported = async () => {
    const names = await readdir(folder)
    const texts = await Promise.all(names.map((file) => readFile(join(folder, file), 'utf8')))
    const lines = texts.flatMap((text) => text.split('\n').slice(0, -1))
    return lines.map((line) => JSON.parse(line).message.ID as string)
  }

  it(`${kills} kills before and after the lines and the rows lose no message`, {
    ...needsOf(name),
    timeout: 60_000 + kills * 10_000,
  }, async () => {
    const ids: string[] = []
    for (let kill = 0; kill < kills; kill++) {
      const own = Array.from({ length: 250 }, (_, n) => `m${kill}-${n}`)
      ids.push(...own)
      await broadcastAndDeliver(own)
      expect(await prune({ at: points[kill % 3] ?? 'after-lines', step: 1 + (kill % 2) })).toBe('SIGKILL')
      const exported = new Set(await readExported())
      await withStorage(async (storage) => {
        for (const id of ids)
          if (!exported.has(id)) expect(await storage.getMessage('c', id), id).not.toBeNull()
      })
    }
    expect(await prune({ at: 'after-rows', step: 1_000_000 })).toBe(0)
    await withStorage(async (storage) => {
      expect(await storage.countMessages('c')).toMatchObject({ dispatched: 0 })
    })
    expect([...new Set(await readExported())].sort()).toEqual(ids.sort())
  })
})
