import type { Item } from '../../../core/item.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type { ItemOrder, ItemsQuery, ListedState } from '../../contract/items.ts'
import { queueNotFound } from '../../shared/queue-checks.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
import { itemColumnList, itemColumns, toItem } from './rows.ts'

const orderColumns: Record<ItemOrder, string> = {
  id: 'id',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  diedAt: 'died_at',
  availableAt: 'available_at',
  priority: 'priority',
}

const stateConditions: Record<ListedState, string> = {
  waiting: '(state = 0 and available_at is null)',
  scheduled: '(state = 0 and available_at is not null)',
  leased: 'state = 1',
  done: 'state = 2',
  dead: 'state = 3',
  discarded: 'state = 4',
}

export function listItems(database: Database, query: ItemsQuery): Item[] {
  return select(database, query, 'items', itemColumnList).map((row) => toItem(row, query.queue))
}

export function listArchive(database: Database, query: ItemsQuery): ArchivedItem[] {
  return select(database, query, 'archive', `${itemColumnList}, archived_at`).map((row) => ({
    item: toItem(row, query.queue),
    archivedAt: row[itemColumns.length] as number,
  }))
}

function select(database: Database, query: ItemsQuery, table: string, columns: string): Values[] {
  const queueId = database.get('select id from queues where name = ?', query.queue)?.id
  if (queueId === undefined) throw queueNotFound(query.queue)
  const conditions = ['queue_id = ?']
  const values: Bound[] = [queueId]
  const where = (condition: string, ...bound: Bound[]) => {
    conditions.push(condition)
    values.push(...bound)
  }
  const column = orderColumns[query.order ?? 'id']
  const direction = query.isDescending ? 'desc' : 'asc'
  if (query.partition !== undefined) where('partition = ?', query.partition)
  if (query.states !== undefined && query.states.length > 0) {
    where(`(${query.states.map((state) => stateConditions[state]).join(' or ')})`)
  }
  if (query.ids !== undefined) where('id in (select value from json_each(?))', JSON.stringify(query.ids))
  if (query.rootIds !== undefined) {
    where(
      '(source_id is not null or group_id is not null) and source_id is not null and root_id in (select value from json_each(?))',
      JSON.stringify(query.rootIds),
    )
  }
  if (column === 'died_at' || column === 'available_at') where(`${column} is not null`)
  if (query.from !== undefined) {
    const beyond = `${query.isDescending ? '<' : '>'}${query.from.isIncluded ? '=' : ''}`
    if (column === 'id') where(`id ${beyond} ?`, query.from.id)
    else where(`(${column}, id) ${beyond} (?, ?)`, query.from.value ?? 0, query.from.id)
  }
  const order = column === 'id' ? `id ${direction}` : `${column} ${direction}, id ${direction}`
  return database.arrays(
    `select ${columns} from ${table} where ${conditions.join(' and ')} order by ${order} limit +?`,
    ...values,
    query.countMax,
  )
}
