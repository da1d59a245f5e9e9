/**
 * Follows the example of docs/internals/README.md and compares rows and counts with the table there after
 * each step.
 */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { isRedriving } from '../../src/core/dead-letters/letter.ts'
import { toRootId } from '../../src/core/ids/ids.ts'
import type { Item } from '../../src/core/items/item.ts'
import type { Counts } from '../../src/storage/contract/counts.ts'
import { countColumns } from '../../src/storage/shared/counts/count-columns.ts'
import { describeStores } from '../conformance/support/test-stores.ts'
import { minute, newItems } from '../make.ts'
import { ann, createTestSystem, type TestSystem } from './test-system.ts'

const page = new URL('../../../docs/internals/README.md', import.meta.url)

describeStores('the path of an item', (given) => {
  it('the rows and counts after each step are those that the documentation has', async () => {
    const system = createTestSystem(given.storage)
    const { engine, letters } = system
    const names = new Map<string, string>()
    const read = async (step: string) => [step, ...(await readCells(system, names))]
    const lease = () => engine.lease('orders', { clientId: 'worker', countMax: 1, timeoutMs: 5_000 })
    await engine.createQueue({ name: 'orders-dead' })
    await engine.createQueue({
      name: 'orders',
      deadQueue: 'orders-dead',
      attemptsMax: 1,
      leaseTimeoutUs: minute,
    })

    const steps: string[][] = []
    await engine.produce('orders', newItems(1))
    steps.push(await read('produce'))
    await lease()
    steps.push(await read('lease'))
    system.tick(minute)
    await engine.advance()
    steps.push(await read('end of the lease'))
    const [letter] = await given.storage.listItems({ queue: 'orders-dead', countMax: 1 })
    const options = { target: null, edit: null, isDeadAllowed: false, isCapped: false }
    await letters.redrive([toRootId(letter?.id ?? '')], options, ann)
    steps.push(await read('redrive'))
    const { partition, items } = await lease()
    steps.push(await read('lease'))
    await engine.complete('orders', partition, [items[0]?.id ?? ''])
    steps.push(await read('complete'))
    await system.close()

    expect(steps).toEqual(readTable())
  })
})

/** The cells of the table, without its header. */
function readTable(): string[][] {
  const [, table = ''] = readFileSync(page, 'utf8').split('### The rows after each step')
  const lines = table.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** `names`: the letter by which the table names each item, by id. */
async function readCells({ storage }: TestSystem, names: Map<string, string>): Promise<string[]> {
  const queues = ['orders', 'orders-dead']
  const rows: string[] = []
  for (const queue of queues) {
    const [item] = await storage.listItems({ queue, countMax: 2 })
    rows.push(item === undefined ? '–' : describeItem(item, names))
  }
  const counts: string[] = []
  for (const queue of queues) {
    const [partition] = await storage.readCounts({ queue })
    counts.push(partition === undefined ? '–' : describeCounts(partition))
  }
  return [...rows, ...counts]
}

function describeItem(item: Item, names: Map<string, string>): string {
  const name = (id: string): string => {
    const known = names.get(id) ?? 'ABC'.charAt(names.size)
    names.set(id, known)
    return known
  }
  const state = `${name(item.id)} ${item.state}`
  if (isRedriving(item)) return `${state} by its redrive`
  if (item.state === 'leased') return `${state}, attempts ${item.attempts}`
  if (item.letterId !== null) return `${state}, letter id ${name(item.letterId)}`
  return item.sourceId === null || item.state === 'done'
    ? state
    : `${state}, source id ${name(item.sourceId)}`
}

/** Accepted first, then the counts that are not zero: totals before the rows that are there now. */
function describeCounts(counts: Counts): string {
  const order = ['accepted', 'deadLettered', 'completed', 'waiting', 'leased', 'done'] as const
  const shown = order.filter((name) => counts[name] > 0)
  return shown.length === 0 ? '–' : shown.map((name) => `${countColumns[name]} ${counts[name]}`).join(', ')
}
