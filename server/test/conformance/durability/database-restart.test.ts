/** PostgreSQL crashes and restarts several times while writers are running. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { KnownError } from '../../../src/errors.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { pollUntil } from '../../http/poll-until.ts'
import { bytes, noon, toText } from '../../make.ts'
import { expectConsistentStore, expectUnique } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { listAll, run } from '../support/store-reads.ts'

const own = await requireService('privatePostgres')
const batchSize = 3
const crashes = 3

describe('a PostgreSQL that crashes under load', needs(own), () => {
  it('a PostgreSQL crash under load loses no acknowledged write, and writers continue automatically', {
    timeout: 120_000,
  }, async () => {
    const storage = await openStorage({ kind: 'postgres', url: own.url })
    await storage.write([
      { op: 'create-queue', queue: { name: 'produced' }, now: noon },
      { op: 'create-queue', queue: { name: 'imported' }, now: noon },
    ])
    let isOver = false
    const errors: unknown[] = []
    const acknowledged: string[] = []
    const importedOnce: string[] = []
    const writtenSince = { produced: 0, imported: 0 }

    const retrying = async (write: () => Promise<void>, isRepeatable: boolean): Promise<void> => {
      for (;;) {
        try {
          return await write()
        } catch (error) {
          errors.push(error)
          // Leave the event loop to the other writers while the database is away.
          await nextTurn()
          if (!isRepeatable) return
        }
      }
    }
    const batchNames = (name: string) => Array.from({ length: batchSize }, (_, index) => `${name}.${index}`)
    const produce = async (worker: number): Promise<void> => {
      for (let step = 0; !isOver; step++) {
        const names = batchNames(`${worker}.${step}`)
        const items = names.map((name) => ({ payload: bytes(name) }))
        await retrying(async () => {
          await run(storage, { op: 'produce', queue: 'produced', partition: 0, items, now: noon })
          acknowledged.push(...names)
          writtenSince.produced++
        }, false)
      }
    }
    const importAgain = async (worker: number): Promise<void> => {
      for (let step = 0; !isOver; step++) {
        const names = batchNames(`${worker}.${step}`)
        const items = names.map((name) => ({ payload: bytes(name), sourceId: name }))
        await retrying(async () => {
          await run(storage, { op: 'import', queue: 'imported', partition: 0, items, now: noon })
          importedOnce.push(...names)
          writtenSince.imported++
        }, true)
      }
    }
    const writers = [0, 1, 2, 3].flatMap((worker) => [produce(worker), importAgain(worker)])

    const untilBothWrote = async (count: number): Promise<void> => {
      writtenSince.produced = 0
      writtenSince.imported = 0
      await pollUntil(
        async () => Math.min(writtenSince.produced, writtenSince.imported),
        (written) => written >= count,
        60_000,
      )
    }
    for (let crash = 0; crash < crashes; crash++) {
      await untilBothWrote(20)
      await own.stop('immediate')
      await expectRefusal(storage.ping(), 'STORE_UNAVAILABLE')
      await own.start()
    }
    await untilBothWrote(20)
    isOver = true
    await Promise.all(writers)

    expect(errors.length, 'errors during the crashes').toBeGreaterThan(0)
    const unexpected = errors.filter(
      (error) => !(error instanceof KnownError && error.code === 'STORE_UNAVAILABLE'),
    )
    expect(unexpected).toEqual([])

    await storage.ping()
    const imported = (await listAll(storage, 'imported')).map((item) => toText(item.payload))
    expect(imported.toSorted()).toEqual(importedOnce.toSorted())

    const produced = (await listAll(storage, 'produced')).map((item) => toText(item.payload))
    expectUnique(produced, 'items produced')
    const there = new Set(produced)
    expect(acknowledged.filter((name) => !there.has(name))).toEqual([])
    const sizes = Object.values(Object.groupBy(produced, (name) => name.replace(/\.\d+$/, '')))
    expect(sizes.filter((names) => names?.length !== batchSize)).toEqual([])
    await expectConsistentStore(storage)
    await storage.close()
    await own.end()
  })
})
