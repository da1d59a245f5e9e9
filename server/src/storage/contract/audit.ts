/** The audit log: one row for each operator action, written in the transaction of the action. */
import type { Instant } from '../../core/instant.ts'

export type AuditCommand = WriteAudit

export type AuditResults = { audit: undefined }

export interface AuditStore {
  /** Newest first. */
  listAudit(query: AuditQuery): Promise<readonly AuditRow[]>
}

export type AuditEntry = Readonly<{
  at: Instant
  actor: string
  action: string
  /** The name or id of the changed queue, item, campaign and so on. */
  target: string
  reason: string
  requestId: string
  details: Readonly<Record<string, unknown>>
}>

export type AuditRow = AuditEntry & Readonly<{ id: number }>

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
  /**
   * Only rows from `after` (included) to `before` (excluded), by time and then by id. `position`: continue
   * behind this row.
   */
  times?: Readonly<{ after?: Instant; before?: Instant; position?: Readonly<{ at: Instant; id: number }> }>
  countMax: number
}>
