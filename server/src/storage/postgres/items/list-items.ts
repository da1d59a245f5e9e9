import type { Item } from '../../../core/item.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type { ItemOrder, ItemsQuery, ListedState } from '../../contract/items.ts'
import { queueNotFound } from '../../shared/queue-checks.ts'
import type { Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { texts, uuids } from '../connection/encode-arrays.ts'
import { isId } from '../letters/letter-rows.ts'
import { readColumns, stateCodes, toItem } from './rows.ts'

const orderColumns: Record<ItemOrder, string> = {
  id: 'id',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  diedAt: 'died_at',
  availableAt: 'available_at',
  priority: 'priority',
}

const allStates = Object.keys(stateCodes) as readonly ListedState[]
/** Above this a page by id is sorted, not merged: planning so many branches would cost more. */
const partitionsMergedMax = 64

export async function listItems(connections: Connections, query: ItemsQuery): Promise<Item[]> {
  const rows = await select(connections, query, 'items', '')
  return rows.map((row) => toItem(row, query.queue))
}

export async function listArchive(connections: Connections, query: ItemsQuery): Promise<ArchivedItem[]> {
  const rows = await select(connections, query, 'archive', ', archived_at')
  return rows.map((row) => ({ item: toItem(row, query.queue), archivedAt: row.archived_at as number }))
}

async function select(
  connections: Connections,
  query: ItemsQuery,
  table: 'items' | 'archive',
  more: string,
): Promise<Row[]> {
  const [queue] = await connections.read(
    { name: 'find-queue', text: 'select id, partitions from redrive.queues where name = $1' },
    [query.queue],
  )
  if (queue === undefined) throw queueNotFound(query.queue)
  const { text, values } = listStatement(query, table, more, queue.id as number, queue.partitions as number)
  return connections.read({ text }, values)
}

/**
 * Pages come out of an index in their order, however many rows there are. An index has its rows in
 * order only for one partition or one state, so a query over several takes a page of each and the
 * first of all. (`items_live` has no indexes for that: its rows are few, or in the order of their ids.)
 * Numbers stand in the text, not in parameters: the planner must see them to know that.
 */
export function listStatement(
  query: ItemsQuery,
  table: 'items' | 'archive',
  more: string,
  queueId: number,
  partitions: number,
): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const parameter = (value: unknown): string => `$${values.push(value)}`
  const column = orderColumns[query.order ?? 'id']
  const direction = query.isDescending ? 'desc' : 'asc'
  const order = column === 'id' ? `id ${direction}` : `${column} ${direction}, id ${direction}`
  const limit = `limit ${Math.max(0, Math.floor(query.countMax))}`
  const columns = `${readColumns.join(', ')}${more}`

  const common = [`queue_id = ${queueId}`]
  if (column === 'died_at' || column === 'available_at') common.push(`${column} is not null`)
  if (query.from !== undefined) {
    const beyond = `${query.isDescending ? '<' : '>'}${query.from.isIncluded ? '=' : ''}`
    const id = parameter(query.from.id)
    if (column === 'id') common.push(`id ${beyond} ${id}`)
    else common.push(`(${column}, id) ${beyond} (${parameter(query.from.value ?? 0)}::int8, ${id})`)
  }
  const states = statesOf(query)
  if (states.length < allStates.length) common.push(inList('state', states))
  const from = (source: string, conditions: readonly string[]): string =>
    `select ${columns} from redrive.${source} where ${[...common, ...conditions].join(' and ')}`

  if (query.ids !== undefined || query.rootIds !== undefined) {
    const chosen: string[] = []
    if (query.partition !== undefined) chosen.push(`partition = ${Math.floor(query.partition)}`)
    else chosen.push(`partition = any (array(select generate_series(0, ${partitions - 1})))`)
    if (query.ids !== undefined) chosen.push(`id = any (${parameter(texts(query.ids))}::text[])`)
    if (query.rootIds !== undefined) {
      const rootIds = query.rootIds.filter(isId)
      chosen.push(`uuid = any (${parameter(uuids(rootIds))}::uuid[])`)
      chosen.push(`coalesce(root_id, id) = any (${parameter(texts(rootIds))}::text[])`)
      chosen.push('source_id is not null')
    }
    const source = query.rootIds !== undefined && table === 'items' ? 'items_sourced' : table
    const text = `with chosen as materialized (${from(source, chosen)}) select * from chosen order by ${order} ${limit}`
    return { text, values }
  }

  const inPartition = query.partition === undefined ? [] : [`partition = ${Math.floor(query.partition)}`]
  const byPartition = (source: string): string[] => {
    if (query.partition !== undefined || partitions > partitionsMergedMax) return [from(source, inPartition)]
    return Array.from({ length: partitions }, (_, partition) => from(source, [`partition = ${partition}`]))
  }
  const byState = (source: string): string[] =>
    states.map((state) => from(source, [...inPartition, `state = ${state}`]))

  const branches: string[] = []
  if (table === 'archive')
    branches.push(...(column === 'id' ? byPartition('archive') : [from('archive', inPartition)]))
  else if (column === 'id') branches.push(...byPartition('items_live'), ...byPartition('items_sourced'))
  else branches.push(from('items_live', inPartition), ...byState('items_sourced'))
  const pages = branches.map((branch) => `(${branch} order by ${order} ${limit})`)
  return { text: `select * from (${pages.join(' union all ')}) page order by ${order} ${limit}`, values }
}

/** Only scheduled items have an `availableAt`. */
function statesOf(query: ItemsQuery): readonly number[] {
  const named =
    query.states === undefined || query.states.length === 0 ? allStates : [...new Set(query.states)]
  const codes = named.map((state) => stateCodes[state])
  if (query.order !== 'availableAt') return codes
  return codes.includes(stateCodes.scheduled) ? [stateCodes.scheduled] : [-1]
}

function inList(column: string, values: readonly number[]): string {
  return values.length === 1 ? `${column} = ${values[0]}` : `${column} in (${values.join(', ')})`
}
