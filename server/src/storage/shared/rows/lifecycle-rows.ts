/** Decodes rows of `group_lifecycles` and `group_notices`. */
import type { GroupLifecycle, GroupLifecycleState } from '../../../core/dead-letters/group-lifecycle.ts'
import type { GroupNotice } from '../../contract/groups.ts'
import { type DatabaseRow, readNumber, readNumberOrNull, readText } from './row-values.ts'

export function toGroupLifecycle(row: DatabaseRow): GroupLifecycle {
  return {
    state: readText(row, 'state') as GroupLifecycleState,
    changedAt: readNumber(row, 'changed_at'),
    mutedUntil: readNumberOrNull(row, 'muted_until'),
    actor: readText(row, 'actor'),
    note: readText(row, 'note'),
  }
}

export function toGroupNotice(row: DatabaseRow): GroupNotice {
  const kind = readText(row, 'kind') as GroupNotice['kind']
  return { groupId: readNumber(row, 'group_id'), kind, at: readNumber(row, 'at') }
}
