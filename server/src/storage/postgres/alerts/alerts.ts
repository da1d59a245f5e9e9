import { isStorableText } from '../../../core/text/storable-text.ts'
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
import { readText } from '../../shared/rows/row-values.ts'
import { prepareStatement, type Row, type Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const columns = 'namespace, rule, subject, queue, severity, state, started_at, ended_at, document, id'
const unnested = `unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[],
    $8::int8[], $9::text[], $10::text[], $11::int8[], $12::int8[]) as n(${columns}, version, is_tracked)`
const insertAlerts: Statement = {
  name: 'insert-alerts',
  text: `insert into redrive.alerts (${columns}, version, is_tracked)
    select ${columns}, 1, is_tracked = 1 from ${unnested} on conflict do nothing returning id`,
}
/** An alert that another one about its subject is in the way of is not updated. */
const updateAlerts: Statement = {
  name: 'update-alerts',
  text: `update redrive.alerts a set version = a.version + 1, namespace = n.namespace, rule = n.rule,
      subject = n.subject, queue = n.queue, severity = n.severity, state = n.state,
      is_tracked = n.is_tracked = 1, started_at = n.started_at, ended_at = n.ended_at, document = n.document
    from ${unnested} where a.id = n.id and a.version = n.version
      and (n.is_tracked = 0 or not exists (select from redrive.alerts o where o.is_tracked and o.rule = n.rule
        and o.namespace = n.namespace and o.subject = n.subject and o.id <> n.id))
    returning a.id`,
}

export async function putAlerts({ connection }: Transaction, { alerts }: PutAlerts): Promise<undefined> {
  // An alert that is not tracked any more makes room for a new one about its subject.
  const isNew = ({ version }: StoredAlert): boolean => version === 0
  for (const [statement, rows] of [
    [updateAlerts, alerts.filter((alert) => !isNew(alert))],
    [insertAlerts, alerts.filter(isNew)],
  ] as const) {
    if (rows.length === 0) continue
    checkAll(rows, await connection.query(statement, toColumns(rows)))
  }
}

/** Throws for the first alert whose id is not among the changed rows. */
function checkAll(alerts: readonly Pick<StoredAlert, 'id'>[], changed: readonly Row[]): void {
  const ids = new Set(changed.map((row) => readText(row, 'id')))
  const missing = alerts.find(({ id }) => !ids.has(id))
  if (missing !== undefined) throw alertChanged(missing.id)
}

function toColumns(alerts: readonly StoredAlert[]): Buffer[] {
  const texts = (read: (alert: StoredAlert) => string | null) => encodeTexts(alerts.map(read))
  const numbers = (read: (alert: StoredAlert) => number | null) => encodeInt8s(alerts.map(read))
  return [
    texts(({ namespace }) => namespace),
    texts(({ rule }) => rule),
    texts(({ subject }) => subject),
    texts(({ queue }) => queue),
    texts(({ severity }) => severity),
    texts(({ state }) => state),
    numbers(({ startedAt }) => startedAt),
    numbers(({ endedAt }) => endedAt),
    texts(({ document }) => JSON.stringify(document)),
    texts(({ id }) => id),
    numbers(({ version }) => version),
    numbers(({ isTracked }) => (isTracked ? 1 : 0)),
  ]
}

const deleteAlerts: Statement = {
  name: 'remove-alerts',
  text: `delete from redrive.alerts a using unnest($1::text[], $2::int8[]) as n(id, version)
    where a.id = n.id and a.version = n.version returning a.id`,
}

export async function removeAlerts(
  { connection }: Transaction,
  { alerts }: RemoveAlerts,
): Promise<undefined> {
  if (alerts.length === 0) return
  const ids = encodeTexts(alerts.map(({ id }) => id))
  const versions = encodeInt8s(alerts.map(({ version }) => version))
  checkAll(alerts, await connection.query(deleteAlerts, [ids, versions]))
}

const pruneOld: Statement = {
  name: 'prune-old-alerts',
  text: `delete from redrive.alerts where id in (
    select id from redrive.alerts where ended_at < $1 and not is_tracked order by ended_at limit $2) returning 1`,
}
const pruneBeyond: Statement = {
  name: 'prune-alerts-beyond',
  text: `delete from redrive.alerts where id in (
    select id from redrive.alerts where not is_tracked
      and id <= (select id from redrive.alerts order by id desc limit 1 offset $1) order by id limit $2) returning 1`,
}

export async function pruneAlerts(
  { connection }: Transaction,
  { before, keptMax, countMax }: PruneAlerts,
): Promise<{ removed: number }> {
  const old = await connection.query(pruneOld, [before, countMax])
  const beyond = await connection.query(pruneBeyond, [keptMax, countMax])
  return { removed: old.length + beyond.length }
}

const selectAlerts = `select ${columns}, version, is_tracked::int4 as is_tracked from redrive.alerts`

export async function getAlert(connections: Connections, id: string): Promise<StoredAlert | null> {
  if (!isStorableText(id)) return null
  const [row] = await connections.read({ name: 'get-alert', text: `${selectAlerts} where id = $1` }, [id])
  return row === undefined ? null : toStoredAlert(row)
}

export async function listAlerts(connections: Connections, query: AlertsQuery): Promise<StoredAlert[]> {
  const conditions: string[] = ['true']
  const values: unknown[] = []
  const add = (condition: (parameter: string) => string, value: unknown): void => {
    if (value !== undefined) conditions.push(condition(`$${values.push(value)}`))
  }
  const toArray = (list: readonly string[] | undefined) => list && encodeTexts(list.filter(isStorableText))
  add((list) => `namespace = any (${list}::text[])`, toArray(query.namespaces))
  add((list) => `state = any (${list}::text[])`, toArray(query.states))
  if (query.isTracked !== undefined) conditions.push(query.isTracked ? 'is_tracked' : 'not is_tracked')
  add((rule) => `rule = ${rule}`, query.rule)
  add((severity) => `severity = ${severity}`, query.severity)
  add((queue) => `queue = ${queue}`, query.queue)
  add((from) => `started_at >= ${from}::int8`, query.startedFrom)
  add((until) => `started_at < ${until}::int8`, query.startedUntil)
  add((id) => `id < ${id}`, query.beforeId)
  const text = `${selectAlerts} where ${conditions.join(' and ')} order by id desc limit $${values.push(query.countMax)}::int8`
  return (await connections.read(prepareStatement(text), values)).map(toStoredAlert)
}

export async function countAlerts(connections: Connections): Promise<AlertCount[]> {
  const rows = await connections.read({
    name: 'count-alerts',
    text: `select rule, state, severity, count(*)::int8 as count from redrive.alerts
      where is_tracked and state <> 'resolved' group by rule, state, severity order by rule, state, severity`,
  })
  return rows.map(toAlertCount)
}
