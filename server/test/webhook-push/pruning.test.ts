import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { addDuration, usPerSecond } from '../../src/core/time/instant.ts'
import {
  createMessageArchive,
  type MessageArchive,
} from '../../src/drivers/webhook/pruning/message-archive.ts'
import { createMessagePruner } from '../../src/drivers/webhook/pruning/message-pruner.ts'
import { describeStores, type StoreFixture } from '../conformance/support/test-stores.ts'
import { createWebhookActions } from '../conformance/support/webhook-actions.ts'
import { bytes, noon } from '../make.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-export-'))
})
const archives: MessageArchive[] = []
afterEach(async () => {
  for (const archive of archives.splice(0)) await archive.close()
  await rm(folder, { recursive: true })
})
const openArchive = (fileBytesMax = 1_000_000, into = folder): MessageArchive => {
  const archive = createMessageArchive({ folder: into, nodeName: 'node', fileBytesMax, clock })
  archives.push(archive)
  return archive
}

const readFiles = async () => {
  const names = (await readdir(folder)).sort()
  return Promise.all(names.map(async (name) => ({ name, text: await readFile(join(folder, name), 'utf8') })))
}
/** The complete lines of all files. */
const readLines = async () => {
  const files = await readFiles()
  return files.flatMap(({ text }) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line)),
  )
}

const clock = { now: () => noon + 100 * usPerSecond }
const day = 86_400 * usPerSecond

function createTools(given: StoreFixture) {
  const actions = createWebhookActions(given)
  return {
    ...actions,
    deliverAll: async (queue: string) => {
      const holders = new Array<string>(1_000).fill('w')
      const jobs = await given.run({ op: 'lease', queue, partition: 0, holders, now: noon })
      const ids = jobs.map(({ id }) => id)
      if (ids.length > 0) await given.run({ op: 'complete', queue, partition: 0, ids, now: noon })
    },
    pruner: (options: { archive?: MessageArchive; now?: () => number; owner?: string } = {}) =>
      createMessagePruner({
        storage: () => given.storage,
        engine: () => ({ write: (commands) => given.storage.write(commands) }),
        clock: options.now === undefined ? clock : { now: options.now },
        archive: options.archive ?? openArchive(),
        retentionUs: 10 * usPerSecond,
        owner: options.owner ?? 'a',
      }),
  }
}

describeStores('exported messages', (given) => {
  const { channel, consumer, broadcast, pruner, deliverAll } = createTools(given)

  it('a line has the message with its payload and headers, and its jobs', async () => {
    await channel('x1')
    const { queue } = await consumer('x1', 'k')
    await broadcast('x1', 'm', { headers: [['X-Tenant', bytes('a')]], priority: 2 })
    await deliverAll(queue)
    expect(await pruner().pass()).toBe(1)
    expect((await readFiles()).map(({ name }) => name)).toEqual([
      expect.stringMatching(/^node_\d{8}T\d{6}\.\d{3}Z\.jsonl$/),
    ])
    expect(await readLines()).toEqual([
      {
        message: {
          ID: 'm',
          ChannelID: 'x1',
          ProducerID: 'p',
          ProducedBy: 'P',
          ContentType: 'application/json',
          Priority: 2,
          Status: 'DISPATCHED',
          ReceivedAt: '2026-11-15T12:00:00.000Z',
          DispatchedAt: '2026-11-15T12:00:00.000Z',
          Headers: { 'X-Tenant': 'a' },
          Payload: 'payload of m',
        },
        jobs: [
          {
            ID: expect.stringMatching(/^[0-9a-v]{20}$/),
            ConsumerID: 'k',
            ListenerName: 'K',
            ListenerEndpoint: 'http://k.example',
            Status: 'DELIVERED',
            StatusChangedAt: '2026-11-15T12:00:00.000Z',
          },
        ],
      },
    ])
    expect(await given.storage.getMessage('x1', 'm')).toBeNull()
  })

  it('messages younger than the retention stay', async () => {
    await channel('x2')
    await broadcast('x2', 'm')
    expect(await pruner({ now: () => noon + 10 * usPerSecond - 1 }).pass()).toBe(0)
    expect(await readdir(folder)).toEqual([])
    expect(await pruner({ now: () => noon + 10 * usPerSecond }).pass()).toBe(1)
  })

  it('a file ends when it reaches its size, and no line is split', async () => {
    await channel('x3')
    for (let n = 0; n < 20; n++) await broadcast('x3', `m${n}`, { payload: bytes('x'.repeat(1_000)) })
    await broadcast('x3', 'large', { payload: bytes('x'.repeat(20_000)) })
    expect(await pruner({ archive: openArchive(5_000) }).pass()).toBe(21)
    const files = await readFiles()
    expect(files.length).toBeGreaterThan(5)
    const sizes = files.map(({ text }) => text.length)
    expect(sizes.filter((size) => size > 5_000)).toHaveLength(1)
    expect((await readLines()).map(({ message }) => message.ID).sort()).toEqual(
      [...Array.from({ length: 20 }, (_, n) => `m${n}`), 'large'].sort(),
    )
  })

  it('a later run of the same process continues its file', async () => {
    await channel('x4')
    const own = pruner()
    await broadcast('x4', 'one')
    await own.pass()
    await broadcast('x4', 'two')
    await own.pass()
    expect((await readFiles()).map(({ text }) => text.split('\n').length)).toEqual([3])
  })

  it('messages that cannot be pruned are looked at less and less often, and do not hold back others', async () => {
    await channel('x5')
    const { queue } = await consumer('x5', 'k')
    for (let n = 0; n < 300; n++) await broadcast('x5', `stuck${n}`)
    await channel('x6')
    for (let n = 0; n < 10; n++) await broadcast('x6', `free${n}`)
    expect(await pruner().pass()).toBe(10)
    let now = clock.now()
    const turns: number[] = []
    for (let pass = 0; pass < 200; pass++) {
      now = addDuration(now, 600 * usPerSecond)
      const before = addDuration(now, -10 * usPerSecond)
      const due = await given.storage.listPrunable({ before, countMax: 1_000 })
      if (due.length > 0) turns.push(pass)
      expect(await pruner({ now: () => now }).pass()).toBe(0)
    }
    // 200 runs within 33 hours: the time between two turns grows by a half each time.
    expect(turns.length).toBeLessThan(25)
    await deliverAll(queue)
    expect(await pruner({ now: () => now + day }).pass()).toBe(300)
  })

  it('nothing is removed when the lines cannot be written, and the next run continues', async () => {
    await channel('x7')
    await broadcast('x7', 'm')
    const file = join(folder, 'a-file')
    await writeFile(file, '')
    const broken = openArchive(1_000, file)
    await expect(pruner({ archive: broken }).pass()).rejects.toThrow()
    expect(await given.storage.getMessage('x7', 'm')).not.toBeNull()
    expect(await pruner({ owner: 'b' }).pass()).toBe(1)
  })

  it('a server that lost its turn to another one removes nothing', async () => {
    await channel('x8')
    await broadcast('x8', 'm')
    const slow = openArchive()
    const takenOver = {
      ...slow,
      append: async (lines: readonly string[]) => {
        await slow.append(lines)
        const late = clock.now() + 3_600 * usPerSecond
        await given.run({
          op: 'acquire-lock',
          name: 'webhooks/pruning',
          owner: 'b',
          now: late,
          deadline: late + 1,
        })
      },
    }
    await expect(pruner({ archive: takenOver }).pass()).rejects.toMatchObject({ code: 'LOCK_LOST' })
    expect(await given.storage.getMessage('x8', 'm')).not.toBeNull()
  })
})

describe('an archive of messages', () => {
  it('an archive does not use a file again after a write failed', async () => {
    const archive = openArchive(1_000)
    await archive.append(['"one"'])
    await rm(folder, { recursive: true })
    await writeFile(folder, 'no folder')
    await archive.close()
    await expect(archive.append(['"two"'])).rejects.toThrow()
    await rm(folder)
    await archive.append(['"three"'])
    expect(await readLines()).toEqual(['three'])
    expect((await stat(folder)).isDirectory()).toBe(true)
  })
})
