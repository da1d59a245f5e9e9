import type { Item } from '../../../core/items/item.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type { ItemsQuery, ListedState } from '../../contract/items.ts'
import { isNullableOrder, orderColumn } from '../../shared/items/item-order.ts'
import { createQueueNotFoundError } from '../../shared/items/queue-checks.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
import { readQueueIds } from '../queues/queue-names.ts'
import { headColumnList, itemColumnList, readArchivedAt, toItem } from './rows.ts'

/** The SQL condition of each state. */
export const stateConditions: Record<ListedState, string> = {
  waiting: '(state = 0 and available_at is null)',
  scheduled: '(state = 0 and available_at is not null)',
  leased: 'state = 1',
  done: 'state = 2',
  dead: 'state = 3',
  discarded: 'state = 4',
}

export function listItems(database: Database, query: ItemsQuery): Item[] {
  const columns = query.hasBytes === false ? headColumnList : itemColumnList
  return selectRows(database, query, 'items', columns).map((row) => toItem(row, query.queue))
}

export function listArchive(database: Database, query: ItemsQuery): ArchivedItem[] {
  return selectRows(database, query, 'archive', `${itemColumnList}, archived_at`).map((row) => ({
    item: toItem(row, query.queue),
    archivedAt: readArchivedAt(row),
  }))
}

function selectRows(database: Database, query: ItemsQuery, table: string, columns: string): Values[] {
  const [queueId] = readQueueIds(database, [query.queue])
  if (queueId === undefined) throw createQueueNotFoundError(query.queue)
  const { conditions, values } = createConditions(query, queueId)
  const column = orderColumn(query)
  const direction = query.isDescending ? 'desc' : 'asc'
  const order = column === 'id' ? `id ${direction}` : `${column} ${direction}, id ${direction}`
  let bytes = 0
  const isEnough = (row: Values): boolean => {
    bytes += measureRow(row)
    return bytes >= (query.bytesMax ?? Number.POSITIVE_INFINITY)
  }
  return database.readArraysUntil(
    isEnough,
    `select ${columns} from ${table} where ${conditions.join(' and ')} order by ${order} limit +?`,
    ...values,
    query.countMax,
  )
}

/** The bytes and characters of a row. */
function measureRow(row: Values): number {
  let size = 0
  for (const value of row) {
    if (typeof value === 'string' || value instanceof Uint8Array) size += value.length
  }
  return size
}

/** `values`: the values that are bound to the conditions, in their order. */
type Conditions = Readonly<{ conditions: string[]; values: Bound[] }>

function createConditions(query: ItemsQuery, queueId: number): Conditions {
  const all: Conditions = { conditions: [], values: [] }
  const { partition, states = [], ids, rootIds } = query
  const column = orderColumn(query)
  addCondition(all, 'queue_id = ?', queueId)
  if (partition !== undefined) addCondition(all, 'partition = ?', partition)
  if (states.length > 0) {
    addCondition(all, `(${states.map((state) => stateConditions[state]).join(' or ')})`)
  }
  if (ids !== undefined) addCondition(all, 'id in (select value from json_each(?))', JSON.stringify(ids))
  if (rootIds !== undefined) {
    addCondition(
      all,
      // The first part is the condition of the index, which SQLite uses only if it is repeated here.
      '(source_id is not null or group_id is not null) and source_id is not null and root_id in (select value from json_each(?))',
      JSON.stringify(rootIds),
    )
  }
  if (isNullableOrder(query)) addCondition(all, `${column} is not null`)
  addStart(all, query, column)
  return all
}

function addStart(all: Conditions, { from, isDescending }: ItemsQuery, column: string): void {
  if (from === undefined) return
  const comparison = `${isDescending ? '<' : '>'}${from.isIncluded ? '=' : ''}`
  if (column === 'id') addCondition(all, `id ${comparison} ?`, from.id)
  else addCondition(all, `(${column}, id) ${comparison} (?, ?)`, from.value ?? 0, from.id)
}

function addCondition({ conditions, values }: Conditions, condition: string, ...bound: Bound[]): void {
  conditions.push(condition)
  values.push(...bound)
}
