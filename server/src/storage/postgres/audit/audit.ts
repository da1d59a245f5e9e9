import { Buffer } from 'node:buffer'
import { systemNamespace } from '../../../core/items/queue.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'
import type {
  AuditEntry,
  AuditHead,
  AuditQuery,
  AuditRow,
  ChainedAuditRow,
  WriteAudit,
} from '../../contract/audit.ts'
import { linkAuditRows } from '../../shared/audit/audit-chain.ts'
import { addNamespaces, listTargets } from '../../shared/audit/audit-namespaces.ts'
import { toAuditHead, toAuditRow, toChainedRow, toStoredAudit } from '../../shared/audit/audit-rows.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeBytes, encodeInt8s, encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { isKsuid } from '../letters/letter-rows.ts'
import { letterNamespacesSql } from '../letters/read-letters.ts'
import type { Transaction } from '../transaction.ts'

const takeChain: Statement = {
  name: 'take-audit-chain',
  text: `select taken, last_position, encode(last_hash, 'hex') as last_hash, ids,
      exists (select from redrive.queues q where q.namespace < '${systemNamespace}')
        or exists (select from redrive.queues q where q.namespace > '${systemNamespace}') as has_namespaces
    from redrive.take_audit_chain($1)`,
}
const insertAuditRows: Statement = {
  name: 'insert-audit',
  text: `with added as (
      insert into redrive.audit (id, at, actor, action, target, reason, request_id, details, namespace, address,
        key_prefix, chain, position, hash) overriding system value
      select t.id, t.at, t.actor, t.action, t.target, t.reason, t.request_id, t.details, t.namespace, t.address,
        t.key_prefix, $12::int4, t.position, t.hash
      from unnest($1::int8[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $13::int8[], $14::bytea[]) as t(id, at, actor, action, target, reason,
        request_id, details, namespace, address, key_prefix, position, hash)
    ), moved as (
      update redrive.audit_chains c set position = $15::int8, hash = $16::bytea, last_id = $17::int8
      where c.chain = $12::int4 and c.position = $18::int8 returning 1
    )
    select redrive.expect_rows((select count(*) from moved), 1)`,
}

export async function writeAudit(
  transaction: Transaction,
  commands: readonly WriteAudit[],
): Promise<undefined[]> {
  await insertAudit(
    transaction.connection,
    commands.flatMap((command) => command.entries),
  )
  return commands.map(() => undefined)
}

/**
 * Writes the rows as the next ones of a chain that no other transaction holds (`take_audit_chain` in the
 * migration), so that servers do not wait for each other.
 */
export async function insertAudit(connection: Connection, given: readonly AuditEntry[]): Promise<void> {
  if (given.length === 0) return
  const [taken = {}] = await connection.query(takeChain, [given.length])
  // Most stores have only the namespace `_system`: then no target is looked up.
  const entries = taken.has_namespaces === true ? await findNamespaces(connection, given) : given
  const chain = readNumber(taken, 'taken')
  const position = readNumber(taken, 'last_position')
  const ids = readText(taken, 'ids').split(',').map(Number)
  const rows = entries.map((entry, index) => ({ ...toStoredAudit(entry), id: ids[index] as number }))
  const links = linkAuditRows({ chain, position, hash: readText(taken, 'last_hash') }, rows)
  const hashes = links.map(({ hash }) => Buffer.from(hash, 'hex'))
  await connection.query(insertAuditRows, [
    encodeInt8s(ids),
    encodeInt8s(rows.map((row) => row.at)),
    encodeTexts(rows.map((row) => row.actor)),
    encodeTexts(rows.map((row) => row.action)),
    encodeTexts(rows.map((row) => row.target)),
    encodeTexts(rows.map((row) => row.reason)),
    encodeTexts(rows.map((row) => row.requestId)),
    encodeTexts(rows.map((row) => row.details)),
    encodeTexts(rows.map((row) => row.namespace)),
    encodeTexts(rows.map((row) => row.address)),
    encodeTexts(rows.map((row) => row.keyPrefix)),
    chain,
    encodeInt8s(links.map((link) => link.position)),
    encodeBytes(hashes),
    position + rows.length,
    hashes.at(-1),
    ids.at(-1),
    position,
  ])
}

const findTargets: Statement = {
  name: 'audit-target-namespaces',
  text: `${letterNamespacesSql} union all
    select q.name, q.namespace from redrive.queues q where q.name = any ($3::text[])`,
}

async function findNamespaces(
  connection: Connection,
  entries: readonly AuditEntry[],
): Promise<readonly AuditEntry[]> {
  const { letterIds, queues } = listTargets(entries)
  const ids = letterIds.filter(isKsuid)
  const rows = await connection.query(findTargets, [encodeUuids(ids), encodeTexts(ids), encodeTexts(queues)])
  const found = rows.map((row) => [readText(row, 'letter_id'), readText(row, 'namespace')] as const)
  return addNamespaces(entries, new Map(found))
}

export async function listAudit(connections: Connections, query: AuditQuery): Promise<AuditRow[]> {
  const conditions: string[] = []
  const values: unknown[] = [query.countMax]
  const addCondition = (condition: string, value: unknown) => {
    if (value === undefined) return
    values.push(value)
    conditions.push(`${condition} $${values.length}`)
  }
  addCondition('id <', query.beforeId)
  addCondition('target =', query.target)
  addCondition('action =', query.action)
  addCondition('actor =', query.actor)
  const { times, namespaces, requestId } = query
  // With the conditions of the partial indexes, which the planner must be able to read.
  addCondition(requestId === '' ? 'request_id =' : `request_id <> '' and request_id =`, requestId)
  if (namespaces !== undefined) {
    if (!namespaces.includes(systemNamespace)) conditions.push(`namespace <> '${systemNamespace}'`)
    values.push(encodeTexts(namespaces.filter(isStorableText)))
    conditions.push(`namespace = any ($${values.length}::text[])`)
  }
  addCondition('at >=', times?.after)
  if (times?.position === undefined) addCondition('at <', times?.before)
  else {
    values.push(times.position.at, times.position.id)
    conditions.push(`(at, id) < ($${values.length - 1}::int8, $${values.length}::int8)`)
  }
  const filter = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const order = times === undefined ? 'id desc' : 'at desc, id desc'
  const text = `select * from redrive.audit ${filter} order by ${order} limit $1`
  return (await connections.read({ text }, values)).map(toAuditRow)
}

export async function readAuditChain(
  connections: Connections,
  { afterId, countMax }: Readonly<{ afterId: number; countMax: number }>,
): Promise<ChainedAuditRow[]> {
  const text = 'select * from redrive.audit where id > $1 order by id limit $2'
  return (await connections.read({ text }, [afterId, countMax])).map(toChainedRow)
}

export async function readAuditHeads(connections: Connections): Promise<AuditHead[]> {
  const text = 'select * from redrive.audit_chains order by chain'
  return (await connections.read({ text }, [])).map(toAuditHead)
}
