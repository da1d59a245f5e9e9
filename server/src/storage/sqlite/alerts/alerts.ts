import type {
  AlertCount,
  AlertsQuery,
  PruneAlerts,
  PutAlerts,
  RemoveAlerts,
  StoredAlert,
} from '../../contract/alerts.ts'
import { alertChanged } from '../../shared/alert-refusals.ts'
import { toAlertCount, toStoredAlert } from '../../shared/rows/alert-rows.ts'
import type { Bound, Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

const insertSql = `insert into alerts
  (namespace, rule, subject, queue, severity, state, is_tracked, started_at, ended_at, document, id, version)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? + 1) on conflict do nothing`
const updateSql = `update or ignore alerts set namespace = ?, rule = ?, subject = ?, queue = ?, severity = ?,
  state = ?, is_tracked = ?, started_at = ?, ended_at = ?, document = ?, version = version + 1
  where id = ? and version = ?`

export function putAlerts({ database }: Transaction, { alerts }: PutAlerts): undefined {
  // An alert that is not tracked any more makes room for a new one about its subject.
  for (const alert of alerts.toSorted((a, b) => Math.min(b.version, 1) - Math.min(a.version, 1))) {
    const sql = alert.version === 0 ? insertSql : updateSql
    if (database.run(sql, ...toColumns(alert), alert.id, alert.version) === 0) throw alertChanged(alert.id)
  }
}

function toColumns(alert: StoredAlert): Bound[] {
  return [
    alert.namespace,
    alert.rule,
    alert.subject,
    alert.queue,
    alert.severity,
    alert.state,
    alert.isTracked ? 1 : 0,
    alert.startedAt,
    alert.endedAt,
    JSON.stringify(alert.document),
  ]
}

export function removeAlerts({ database }: Transaction, { alerts }: RemoveAlerts): undefined {
  for (const { id, version } of alerts) {
    const removed = database.run('delete from alerts where id = ? and version = ?', id, version)
    if (removed === 0) throw alertChanged(id)
  }
}

export function pruneAlerts(
  { database }: Transaction,
  { before, keptMax, countMax }: PruneAlerts,
): { removed: number } {
  const old = database.run(
    `delete from alerts where id in (
       select id from alerts where ended_at < ? and is_tracked = 0 order by ended_at limit ?)`,
    before,
    countMax,
  )
  const beyond = database.run(
    `delete from alerts where id in (
       select id from alerts where is_tracked = 0
         and id <= (select id from alerts order by id desc limit 1 offset ?) order by id limit ?)`,
    keptMax,
    countMax,
  )
  return { removed: old + beyond }
}

export function getAlert(database: Database, id: string): StoredAlert | null {
  const row = database.get('select * from alerts where id = ?', id)
  return row === undefined ? null : toStoredAlert(row)
}

export function listAlerts(database: Database, query: AlertsQuery): StoredAlert[] {
  const conditions: string[] = ['true']
  const values: Bound[] = []
  const add = (condition: string, value: Bound | undefined): void => {
    if (value === undefined) return
    conditions.push(condition)
    values.push(value)
  }
  const toJson = (list: readonly string[] | undefined) => list && JSON.stringify(list)
  add('namespace in (select value from json_each(?))', toJson(query.namespaces))
  add('state in (select value from json_each(?))', toJson(query.states))
  if (query.isTracked !== undefined) conditions.push(`is_tracked = ${query.isTracked ? 1 : 0}`)
  add('rule = ?', query.rule)
  add('severity = ?', query.severity)
  add('queue = ?', query.queue)
  add('started_at >= ?', query.startedFrom)
  add('started_at < ?', query.startedUntil)
  add('id < ?', query.beforeId)
  const sql = `select * from alerts where ${conditions.join(' and ')} order by id desc limit ?`
  return database.all(sql, ...values, query.countMax).map(toStoredAlert)
}

export function countAlerts(database: Database): AlertCount[] {
  const sql = `select rule, state, severity, count(*) as count from alerts
    where is_tracked = 1 and state <> 'resolved' group by rule, state, severity order by rule, state, severity`
  return database.all(sql).map(toAlertCount)
}
