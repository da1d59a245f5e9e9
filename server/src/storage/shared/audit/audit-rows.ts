import { Buffer } from 'node:buffer'
import { systemNamespace } from '../../../core/items/queue.ts'
import type { AuditEntry, AuditHead, AuditRow, ChainedAuditRow, StoredAudit } from '../../contract/audit.ts'
import {
  type DatabaseRow,
  readBytes,
  readBytesOrNull,
  readJson,
  readNumber,
  readText,
} from '../rows/row-values.ts'

export function toAuditRow(row: DatabaseRow): AuditRow {
  const namespace = readText(row, 'namespace')
  const [address, keyPrefix] = [readText(row, 'address'), readText(row, 'key_prefix')]
  return {
    id: readNumber(row, 'id'),
    at: readNumber(row, 'at'),
    actor: readText(row, 'actor'),
    action: readText(row, 'action'),
    target: readText(row, 'target'),
    reason: readText(row, 'reason'),
    requestId: readText(row, 'request_id'),
    details: readJson<AuditRow['details']>(row, 'details'),
    ...(namespace !== systemNamespace && { namespace }),
    ...(address !== '' && { address }),
    ...(keyPrefix !== '' && { keyPrefix }),
  }
}

export function toStoredAudit({ details, ...entry }: AuditEntry): StoredAudit {
  const { namespace = systemNamespace, address = '', keyPrefix = '' } = entry
  return { ...entry, namespace, address, keyPrefix, details: JSON.stringify(details) }
}

export function toChainedRow(row: DatabaseRow): ChainedAuditRow {
  const id = readNumber(row, 'id')
  const hash = readBytesOrNull(row, 'hash')
  return {
    id,
    stored: {
      id,
      at: readNumber(row, 'at'),
      actor: readText(row, 'actor'),
      action: readText(row, 'action'),
      target: readText(row, 'target'),
      reason: readText(row, 'reason'),
      requestId: readText(row, 'request_id'),
      namespace: readText(row, 'namespace'),
      address: readText(row, 'address'),
      keyPrefix: readText(row, 'key_prefix'),
      details: readText(row, 'details'),
    },
    link:
      hash === null
        ? null
        : { chain: readNumber(row, 'chain'), position: readNumber(row, 'position'), hash: toHex(hash) },
  }
}

export function toAuditHead(row: DatabaseRow): AuditHead {
  return {
    chain: readNumber(row, 'chain'),
    position: readNumber(row, 'position'),
    hash: toHex(readBytes(row, 'hash')),
    lastId: readNumber(row, 'last_id'),
  }
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
