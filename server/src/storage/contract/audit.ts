/**
 * The audit log: one row for each operator action, written in the transaction of the action. Rows are never
 * changed or deleted; the database refuses both. Each row is linked to the row before it
 * (shared/audit-chain.ts).
 */
import type { Instant } from '../../core/time/instant.ts'

export type AuditCommand = WriteAudit

export type AuditResults = { audit: undefined }

export interface AuditStore {
  /** Newest first. */
  listAudit(query: AuditQuery): Promise<readonly AuditRow[]>
  /** Oldest first, with the links that the rows have in their chains. */
  readAuditChain(query: Readonly<{ afterId: number; countMax: number }>): Promise<readonly ChainedAuditRow[]>
  /** The last row of each chain. */
  readAuditHeads(): Promise<readonly AuditHead[]>
}

export type AuditEntry = Readonly<
  {
    at: Instant
    actor: string
    action: string
    /** The name or id of the changed queue, item, campaign and so on. */
    target: string
    reason: string
    requestId: string
    details: Readonly<Record<string, unknown>>
  } & AuditOrigin
>

/** `namespace`: of the target; default `_system`. `address`: of the client. Absent: there is none. */
export type AuditOrigin = Readonly<{ namespace?: string; address?: string; keyPrefix?: string }>

export type AuditRow = AuditEntry & Readonly<{ id: number }>

/** The columns of a row. `details` is text, which is hashed as it is stored. */
export type StoredAudit = Readonly<
  Omit<AuditEntry, 'details' | keyof AuditOrigin> &
    Required<AuditOrigin> & {
      details: string
    }
>

/**
 * The place of a row in its chain, and the hash of the row and of all rows before it, as hexadecimal text.
 */
export type AuditLink = Readonly<{ chain: number; position: number; hash: string }>
/** `link` is null for rows from before the chains. */
export type ChainedAuditRow = Readonly<{
  id: number
  stored: StoredAudit & Readonly<{ id: number }>
  link: AuditLink | null
}>
export type AuditHead = AuditLink & Readonly<{ lastId: number }>

/** Writes entries as given. Commands with an `AuditContext` write their own rows. */
export type WriteAudit = Readonly<{ op: 'audit'; entries: readonly AuditEntry[] }>

/**
 * The person or program that asked for a command, and the reason. From it the store writes the command's
 * audit rows, in the transaction of the command and for the changes that really happened: one row for each
 * changed letter, or one row for the queue with the number of changes. A command that changes nothing writes
 * no row.
 */
export type AuditContext = Readonly<
  Omit<AuditEntry, 'target'> & {
    /** Adds one row for all changed letters, with their number, to the rows of the letters. */
    sum?: Pick<AuditEntry, 'action' | 'target'>
  }
>

export type AuditQuery = Readonly<{
  /** Only rows with smaller ids, for a list that is not limited to times. */
  beforeId?: number
  target?: string
  action?: string
  actor?: string
  requestId?: string
  /** Only rows of these namespaces. */
  namespaces?: readonly string[]
  /**
   * Only rows from `after` (included) to `before` (excluded), by time and then by id. `position`: continue
   * behind this row.
   */
  times?: Readonly<{ after?: Instant; before?: Instant; position?: Readonly<{ at: Instant; id: number }> }>
  countMax: number
}>
