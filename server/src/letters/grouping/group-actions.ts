/** Actions of a person on groups and causes. Each has an audit row in its transaction. */
import type { GroupLifecycleState } from '../../core/dead-letters/group-lifecycle.ts'
import type { GroupId } from '../../core/ids/ids.ts'
import { findTextFault } from '../../core/text/storable-text.ts'
import { type Instant, toDate } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import { createAuditCommand } from '../audit.ts'
import type { Letters } from '../letters.ts'
import type { LettersParts } from '../parts.ts'
import { findCause } from './causes.ts'

export type PinnedSubject = Readonly<{ groupId: GroupId } | { causeKey: string }>

export const titleMax = 300

export type GroupDecision = Readonly<{
  state: Exclude<GroupLifecycleState, 'regressed'>
  mutedUntil: Instant | null
  note: string
}>

const decisionActions = {
  open: 'group.reopen',
  acknowledged: 'group.acknowledge',
  muted: 'group.mute',
  resolved: 'group.resolve',
} as const

type GroupActions = Pick<Letters, 'mergeGroups' | 'mergeCauses' | 'pinTitle' | 'decideGroup'>

export function createGroupActions({
  storage,
  engine,
  clock,
}: Pick<LettersParts, 'storage' | 'engine' | 'clock'>): GroupActions {
  return {
    mergeGroups: async (into, groupIds, attribution) => {
      const targets = [...new Set([into, ...groupIds])].map((id) => `group/${id}`)
      const details = { into, groups: [...groupIds] }
      const [{ groupId }] = await engine.write([
        { op: 'merge-groups', into, groupIds },
        createAuditCommand(clock, attribution, 'group.merge', targets, details),
      ] as const)
      return groupId
    },
    mergeCauses: async (into, causeKeys, attribution) => {
      const targets = [...new Set([into, ...causeKeys])].map((key) => `cause/${key}`)
      const details = { into, causes: [...causeKeys] }
      const [{ causeKey }] = await engine.write([
        { op: 'merge-causes', into, causeKeys },
        createAuditCommand(clock, attribution, 'cause.merge', targets, details),
      ] as const)
      return causeKey
    },
    pinTitle: async (subject, given, attribution) => {
      const title = given === null ? null : checkTitle(given)
      const { groupIds, target, before } = await findSubject(storage, subject)
      const action = 'groupId' in subject ? 'group.pin-title' : 'cause.pin-title'
      await engine.write([
        { op: 'pin-title', groupIds, title },
        createAuditCommand(clock, attribution, action, [target], { title, before }),
      ])
    },
    decideGroup: async (named, { state, mutedUntil, note: given }, attribution) => {
      const note = given.trim()
      const fault = findTextFault(note)
      if (fault !== undefined) throw new KnownError('BAD_REQUEST', `the note contains ${fault}`)
      const { groupIds, target } = await findSubject(storage, { groupId: named })
      const [groupId = named] = groupIds
      const changedAt = clock.now()
      const lifecycle = { state, changedAt, mutedUntil, actor: attribution.actor, note }
      const details = { note, ...(mutedUntil !== null && { until: toDate(mutedUntil).toISOString() }) }
      await engine.write([
        { op: 'set-group-lifecycle', groupId, lifecycle },
        createAuditCommand(clock, attribution, decisionActions[state], [target], details),
      ])
      return groupId
    },
  }
}

async function findSubject(
  storage: LettersParts['storage'],
  subject: PinnedSubject,
): Promise<Readonly<{ groupIds: readonly GroupId[]; target: string; before: string }>> {
  if ('groupId' in subject) {
    const filter = { groupIds: [subject.groupId] }
    const [group] = await storage.listGroups({ filter, countMax: 1, isEmptyToo: true })
    if (group === undefined)
      throw new KnownError('GROUP_NOT_FOUND', `group ${subject.groupId} does not exist`)
    return { groupIds: [group.id], target: `group/${group.id}`, before: group.title }
  }
  const cause = await findCause(storage, subject.causeKey, {})
  if (cause === null)
    throw new KnownError('CAUSE_NOT_FOUND', `cause ${JSON.stringify(subject.causeKey)} does not exist`)
  const groupIds = cause.groups.map(({ id }) => id)
  return { groupIds, target: `cause/${cause.causeKey}`, before: cause.title }
}

function checkTitle(given: string): string {
  const title = given.trim()
  const fault = findTextFault(title)
  if (fault !== undefined) throw new KnownError('BAD_REQUEST', `the title contains ${fault}`)
  if (title === '') throw new KnownError('BAD_REQUEST', 'the title is empty; null shows the learned title')
  if (title.length <= titleMax) return title
  throw new KnownError('BAD_REQUEST', `the title has ${title.length} characters; the limit is ${titleMax}`)
}
