/**
 * Groups and causes. A group has the letters of one dead queue that have one cause. A **cause** is all groups
 * with one key, over all queues.
 *
 * Groups can be merged: a merged group keeps its letters and counts, and is shown as the group that it was
 * merged into, in the same transaction for all its letters. Every read accepts the ids of merged groups and
 * the keys of merged causes, and answers with the ids and keys that are shown.
 */
import type { GroupLifecycle } from '../../core/dead-letters/group-lifecycle.ts'
import type { GroupId, LetterId, QueueName } from '../../core/ids/ids.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { CountedFilter } from './letters.ts'

export interface GroupStore {
  /** Causes with a matching letter, those with the most letters first, then by key. */
  listCauses(query: CausesQuery): Promise<readonly CauseCount[]>
  /** The key that this cause has now, also if it was merged into another one; null: it does not exist. */
  findCauseKey(causeKey: string): Promise<string | null>
  /** How groups are shown. Unknown ids are left out. */
  readGroupLabels(groupIds: readonly GroupId[]): Promise<readonly GroupLabel[]>
  getGroupJob(id: string): Promise<StoredGroupJob | null>
  /** Newest first. */
  listGroupJobs(query: GroupJobsQuery): Promise<readonly StoredGroupJob[]>
  /** New and regressed groups whose notices were not cleared yet. Oldest ids first. */
  listGroupNotices(query: Readonly<{ countMax: number }>): Promise<readonly GroupNotice[]>
}

export type GroupNotice = Readonly<{ groupId: GroupId; kind: 'new' | 'regressed'; at: Instant }>

export type CausesQuery = Readonly<{
  filter: CountedFilter
  /** Start after this position. */
  after?: Readonly<{ count: number; causeKey: string }>
  countMax: number
}>
export type CauseCount = Readonly<{ causeKey: string; count: number }>

/**
 * `slug` is that of the group itself: it never changes. `shownAs`: the group into which it was merged, or
 * itself.
 */
export type GroupLabel = Readonly<{ id: GroupId; slug: string; shownAs: GroupId }>

export type GroupCommand =
  | MergeGroups
  | MergeCauses
  | PinTitle
  | PutGroupJob
  | CreateSplit
  | RegroupLetters
  | SetGroupLifecycle
  | ClearGroupNotices

export type GroupResults = {
  'merge-groups': { groupId: GroupId; queue: QueueName; merged: readonly GroupId[] }
  'merge-causes': { causeKey: string; merged: readonly string[] }
  'put-group-job': undefined
  'create-split': { groupId: GroupId }
  /** The number of letters that changed their group. */
  'regroup-letters': { moved: number }
  'pin-title': { groups: readonly Readonly<{ id: GroupId; title: string }>[] }
  /** The group that is shown, and its lifecycle from before. */
  'set-group-lifecycle': { groupId: GroupId; before: GroupLifecycle }
  'clear-group-notices': undefined
}

/**
 * Merges groups of one dead queue into one of them, and their causes. `merged`: the groups that were not part
 * of it before. Rejects with GROUP_NOT_FOUND, and with BAD_REQUEST for groups of several queues.
 */
export type MergeGroups = Readonly<{ op: 'merge-groups'; into: GroupId; groupIds: readonly GroupId[] }>
/**
 * Gives the groups of all these causes the key of one of them. The groups of each queue stay apart. Rejects
 * with CAUSE_NOT_FOUND.
 */
export type MergeCauses = Readonly<{ op: 'merge-causes'; into: string; causeKeys: readonly string[] }>
/**
 * Shows the groups with this title from now on; null: with the title that is learned. Returns the titles from
 * before. Groups that do not exist are left out.
 */
export type PinTitle = Readonly<{ op: 'pin-title'; groupIds: readonly GroupId[]; title: string | null }>

/**
 * A person decided about a group. A letter that arrives later makes a resolved group regressed, in the
 * transaction of the letter: no letter arrives unnoticed while the group is resolved. Rejects with
 * GROUP_NOT_FOUND.
 */
export type SetGroupLifecycle = Readonly<{
  op: 'set-group-lifecycle'
  groupId: GroupId
  lifecycle: GroupLifecycle & Readonly<{ changedAt: Instant }>
}>
/** The notices have been read: removes those of this kind and time, and keeps newer ones. */
export type ClearGroupNotices = Readonly<{ op: 'clear-group-notices'; notices: readonly GroupNotice[] }>

/**
 * Background work on the groups of letters. letters/grouping/group-jobs.ts encodes and decodes the document.
 */
export type StoredGroupJob = Readonly<{
  id: string
  /** Grows by 1 with each `put-group-job`. */
  version: number
  /** Also in the document. A column of its own, so that jobs can be found by state. */
  state: string
  /** The dead queue, also in the document. */
  queue: QueueName
  document: Readonly<Record<string, unknown>>
}>
export type GroupJobsQuery = Readonly<{ states?: readonly string[]; beforeId?: string; countMax: number }>

/**
 * Stores the job if its stored version is `version` (0: it does not exist yet). Rejects the whole write with
 * GROUP_JOB_CHANGED if it has another one, so that a cancelled job moves no more letters.
 */
export type PutGroupJob = Readonly<{ op: 'put-group-job' } & Omit<StoredGroupJob, 'queue'>>
/**
 * Creates the group of a split, without letters: like `groupId`, but no letter joins it by its cause. A
 * repeated command returns the same group. Rejects with GROUP_NOT_FOUND.
 */
export type CreateSplit = Readonly<{
  op: 'create-split'
  splitId: string
  groupId: GroupId
  title: string | null
}>
/**
 * Groups letters again: by their failure and the present rules of their queue, or into a group of a split.
 * Letters and counts move in this transaction. Letters that do not exist are left out.
 */
export type RegroupLetters = Readonly<{
  op: 'regroup-letters'
  letterIds: readonly LetterId[]
  /** Move letters of this group, and of the groups merged into it, to the group that the split created. */
  split: Readonly<{ splitId: string; groupId: GroupId; into: GroupId }> | null
  now: Instant
}>
