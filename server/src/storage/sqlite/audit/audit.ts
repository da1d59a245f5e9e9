import { Buffer } from 'node:buffer'
import { systemNamespace } from '../../../core/items/queue.ts'
import type {
  AuditEntry,
  AuditHead,
  AuditQuery,
  AuditRow,
  ChainedAuditRow,
  WriteAudit,
} from '../../contract/audit.ts'
import { firstHash, linkAuditRows } from '../../shared/audit/audit-chain.ts'
import { addNamespaces, listTargets } from '../../shared/audit/audit-namespaces.ts'
import { toAuditHead, toAuditRow, toChainedRow, toStoredAudit } from '../../shared/audit/audit-rows.ts'
import { readNumber, readNumberOrNull, readText } from '../../shared/rows/row-values.ts'
import type { Bound, Database } from '../connection/database.ts'
import { readLetterNamespaces } from '../letters/read-letters.ts'
import type { Transaction } from '../transaction.ts'

export function writeAudit({ database }: Transaction, command: WriteAudit): undefined {
  insertAudit(database, command.entries)
}

/** A file has one writer, so one chain is enough. */
const onlyChain = 1

export function insertAudit(database: Database, given: readonly AuditEntry[]): void {
  if (given.length === 0) return
  const entries = hasNamespaces(database) ? addNamespaces(given, findNamespaces(database, given)) : given
  const head = readHead(database)
  const firstId = readNewestId(database) + 1
  const rows = entries.map((entry, index) => ({ ...toStoredAudit(entry), id: firstId + index }))
  const links = linkAuditRows(head, rows)
  for (const [index, row] of rows.entries()) {
    const { chain, position, hash } = links[index] as (typeof links)[number]
    database.run(
      `insert into audit (id, at, actor, action, target, reason, request_id, details, namespace, address,
         key_prefix, chain, position, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.id,
      row.at,
      row.actor,
      row.action,
      row.target,
      row.reason,
      row.requestId,
      row.details,
      row.namespace,
      row.address,
      row.keyPrefix,
      chain,
      position,
      Buffer.from(hash, 'hex'),
    )
  }
  const last = links.at(-1) as (typeof links)[number]
  database.run(
    `insert into audit_chains (chain, position, hash, last_id) values (?, ?, ?, ?)
       on conflict do update set position = excluded.position, hash = excluded.hash, last_id = excluded.last_id`,
    onlyChain,
    last.position,
    Buffer.from(last.hash, 'hex'),
    firstId + rows.length - 1,
  )
}

/** Most stores have only the namespace `_system`: then no target is looked up. */
function hasNamespaces(database: Database): boolean {
  const sql = `select exists (select 1 from queues where namespace < '${systemNamespace}')
    or exists (select 1 from queues where namespace > '${systemNamespace}')`
  return readNumber(database.getArray(sql) ?? [0], 0) === 1
}

function findNamespaces(database: Database, entries: readonly AuditEntry[]): ReadonlyMap<string, string> {
  const { letterIds, queues } = listTargets(entries)
  const found = new Map<string, string>()
  for (const { letterId, namespace } of readLetterNamespaces(database, letterIds))
    found.set(letterId, namespace)
  for (const name of queues) {
    const row = database.getArray('select namespace from queues where name = ?', name)
    if (row !== undefined) found.set(name, readText(row, 0))
  }
  return found
}

function readHead(database: Database): Pick<AuditHead, 'chain' | 'position' | 'hash'> {
  const row = database.get('select * from audit_chains where chain = ?', onlyChain)
  return row === undefined ? { chain: onlyChain, position: 0, hash: firstHash } : toAuditHead(row)
}

/** Also counts rows that another program inserted, so that their ids do not stop all writes. */
function readNewestId(database: Database): number {
  const row = database.getArray(`select max(seq) from sqlite_sequence where name = 'audit'`) ?? [null]
  return readNumberOrNull(row, 0) ?? 0
}

export function listAudit(database: Database, query: AuditQuery): AuditRow[] {
  const conditions: string[] = []
  const values: Bound[] = []
  const addCondition = (condition: string, value: Bound | undefined) => {
    if (value === undefined) return
    conditions.push(condition)
    values.push(value)
  }
  addCondition('id < ?', query.beforeId)
  addCondition('target = ?', query.target)
  addCondition('action = ?', query.action)
  addCondition('actor = ?', query.actor)
  // With the conditions of the partial indexes, which the planner must be able to read.
  if (query.requestId !== '') addCondition(`request_id <> '' and request_id = ?`, query.requestId)
  else addCondition('request_id = ?', query.requestId)
  const { times, namespaces } = query
  if (namespaces !== undefined) {
    if (!namespaces.includes(systemNamespace)) conditions.push(`namespace <> '${systemNamespace}'`)
    addCondition('namespace in (select value from json_each(?))', JSON.stringify(namespaces))
  }
  addCondition('at >= ?', times?.after)
  if (times?.position === undefined) addCondition('at < ?', times?.before)
  else {
    conditions.push('(at, id) < (?, ?)')
    values.push(times.position.at, times.position.id)
  }
  const filter = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const order = times === undefined ? 'id desc' : 'at desc, id desc'
  const sql = `select * from audit ${filter} order by ${order} limit +?`
  return database.all(sql, ...values, query.countMax).map(toAuditRow)
}

export function readAuditChain(
  database: Database,
  { afterId, countMax }: Readonly<{ afterId: number; countMax: number }>,
): ChainedAuditRow[] {
  return database
    .all('select * from audit where id > ? order by id limit +?', afterId, countMax)
    .map(toChainedRow)
}

export function readAuditHeads(database: Database): AuditHead[] {
  return database.all('select * from audit_chains order by chain').map(toAuditHead)
}
