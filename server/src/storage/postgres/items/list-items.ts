import type { Item } from '../../../core/items/item.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type { ItemsQuery, ListedState } from '../../contract/items.ts'
import { isNullableOrder, orderColumn } from '../../shared/items/item-order.ts'
import { createQueueNotFoundError } from '../../shared/items/queue-checks.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { isKsuid } from '../letters/letter-rows.ts'
import { readColumns, readHeadColumns, stateCodes, toItem } from './rows.ts'

const allStates = Object.keys(stateCodes) as readonly ListedState[]
/**
 * With more partitions than this, a page in the order of ids is sorted and not merged: a plan with one branch
 * per partition would cost more.
 */
const partitionsMergedMax = 64

export async function listItems(connections: Connections, query: ItemsQuery): Promise<Item[]> {
  const rows = await selectRows(connections, query, 'items', '')
  return rows.map((row) => toItem(row, query.queue))
}

export async function listArchive(connections: Connections, query: ItemsQuery): Promise<ArchivedItem[]> {
  const rows = await selectRows(connections, query, 'archive', ', archived_at')
  return rows.map((row) => ({ item: toItem(row, query.queue), archivedAt: readNumber(row, 'archived_at') }))
}

async function selectRows(
  connections: Connections,
  query: ItemsQuery,
  table: Table,
  moreColumns: string,
): Promise<Row[]> {
  const [queue] = await connections.read(
    { name: 'find-queue', text: 'select id, partitions from redrive.queues where name = $1' },
    [query.queue],
  )
  if (queue === undefined) throw createQueueNotFoundError(query.queue)
  const [queueId, partitions] = [readNumber(queue, 'id'), readNumber(queue, 'partitions')]
  const { text, values } = listStatement(query, table, moreColumns, queueId, partitions)
  return connections.read({ text }, values)
}

type Table = 'items' | 'archive'

/** The parts of a statement. `select` returns a query of one table with more conditions. */
type ListParts = Readonly<{
  partitions: number
  states: readonly number[]
  order: string
  limit: string
  parameter: (value: unknown) => string
  select: (source: string, conditions: readonly string[]) => string
}>

/**
 * A page is read from an index in its order, so its cost does not depend on the number of rows. An index has
 * its rows in order only within one partition or one state. So a query of several of them reads a page of
 * each and merges these pages. (`items_live` has no indexes for this: it has few rows, or they are in the
 * order of their ids.) Numbers are part of the text and not parameters, because the planner needs their
 * values to choose such a plan.
 */
export function listStatement(
  query: ItemsQuery,
  table: Table,
  moreColumns: string,
  queueId: number,
  partitions: number,
): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const parameter = (value: unknown): string => `$${values.push(value)}`
  const column = orderColumn(query)
  const direction = query.isDescending ? 'desc' : 'asc'
  const states = findStates(query)
  const common = [
    `queue_id = ${queueId}`,
    ...(isNullableOrder(query) ? [`${column} is not null`] : []),
    ...createStart(query, column, parameter),
    ...(states.length < allStates.length ? [printInList('state', states)] : []),
  ]
  const columns = `${(query.hasBytes === false ? readHeadColumns : readColumns).join(', ')}${moreColumns}`
  const parts: ListParts = {
    partitions,
    states,
    order: column === 'id' ? `id ${direction}` : `${column} ${direction}, id ${direction}`,
    limit: `limit ${Math.max(0, Math.floor(query.countMax))}`,
    parameter,
    select: (source, conditions) =>
      `select ${columns} from redrive.${source} where ${[...common, ...conditions].join(' and ')}`,
  }
  const hasIds = query.ids !== undefined || query.rootIds !== undefined
  const text = hasIds ? selectByIds(query, table, parts) : selectPages(query, table, parts)
  return { text: limitBytes(text, query, parts), values }
}

/**
 * Ends the page with the row that reaches the limit of bytes. The size of a stored value is known without
 * reading it, so the payloads of the rows behind the limit are not read.
 */
function limitBytes(text: string, { bytesMax, hasBytes }: ItemsQuery, { order }: ListParts): string {
  if (bytesMax === undefined || hasBytes === false) return text
  return `select * from (
      select l.*, sum(l.size) over (order by ${order} rows unbounded preceding) - l.size as bytes_before
      from (select s.*, (${rowBytes})::int8 as size from (${text}) s) l
    ) m where m.bytes_before < ${Math.max(1, Math.floor(bytesMax))} order by ${order}`
}

const rowBytes = [
  'payload',
  'key',
  'headers',
  'kind',
  'encoding',
  'reference',
  'failure',
  'history',
  'letter',
]
  .map((column) => `coalesce(octet_length(s.${column}), 0)`)
  .join(' + ')

/** The condition of the first item of the page. */
function createStart(
  { from, isDescending }: ItemsQuery,
  column: string,
  parameter: ListParts['parameter'],
): string[] {
  if (from === undefined) return []
  const comparison = `${isDescending ? '<' : '>'}${from.isIncluded ? '=' : ''}`
  const id = parameter(from.id)
  if (column === 'id') return [`id ${comparison} ${id}`]
  return [`(${column}, id) ${comparison} (${parameter(from.value ?? 0)}::int8, ${id})`]
}

function selectByIds({ partition, ids, rootIds }: ItemsQuery, table: Table, parts: ListParts): string {
  const { partitions, order, limit, parameter, select } = parts
  const conditions = [
    partition === undefined
      ? `partition = any (array(select generate_series(0, ${partitions - 1})))`
      : `partition = ${Math.floor(partition)}`,
  ]
  if (ids !== undefined) conditions.push(`id = any (${parameter(encodeTexts(ids))}::text[])`)
  if (rootIds !== undefined) {
    const validIds = rootIds.filter(isKsuid)
    conditions.push(`uuid = any (${parameter(encodeUuids(validIds))}::uuid[])`)
    conditions.push(`coalesce(root_id, id) = any (${parameter(encodeTexts(validIds))}::text[])`)
    conditions.push('source_id is not null')
  }
  const source = rootIds !== undefined && table === 'items' ? 'items_sourced' : table
  return `with chosen as materialized (${select(source, conditions)}) select * from chosen order by ${order} ${limit}`
}

/** Reads a page of each branch, and takes the first rows of all of them. */
function selectPages(query: ItemsQuery, table: Table, parts: ListParts): string {
  const { order, limit } = parts
  const pages = createBranches(query, table, parts).map((branch) => `(${branch} order by ${order} ${limit})`)
  return `select * from (${pages.join(' union all ')}) page order by ${order} ${limit}`
}

/** Queries that together find all rows. Each of them finds its rows in the order of an index. */
function createBranches(query: ItemsQuery, table: Table, parts: ListParts): string[] {
  const { partitions, states, select } = parts
  const inPartition = query.partition === undefined ? [] : [`partition = ${Math.floor(query.partition)}`]
  const splitByPartition = (source: string): string[] => {
    if (query.partition !== undefined || partitions > partitionsMergedMax)
      return [select(source, inPartition)]
    return Array.from({ length: partitions }, (_, partition) => select(source, [`partition = ${partition}`]))
  }
  const isById = orderColumn(query) === 'id'
  if (table === 'archive') return isById ? splitByPartition('archive') : [select('archive', inPartition)]
  if (isById) return [...splitByPartition('items_live'), ...splitByPartition('items_sourced')]
  const byState = states.map((state) => select('items_sourced', [...inPartition, `state = ${state}`]))
  return [select('items_live', inPartition), ...byState]
}

/** The codes of the states to list. In the order of `availableAt` only scheduled items are listed. */
function findStates({ states = [], order }: ItemsQuery): readonly number[] {
  const named = states.length === 0 ? allStates : [...new Set(states)]
  const codes = named.map((state) => stateCodes[state])
  if (order !== 'availableAt') return codes
  return codes.includes(stateCodes.scheduled) ? [stateCodes.scheduled] : [-1]
}

function printInList(column: string, values: readonly number[]): string {
  return values.length === 1 ? `${column} = ${values[0]}` : `${column} in (${values.join(', ')})`
}
