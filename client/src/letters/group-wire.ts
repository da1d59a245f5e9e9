/** The JSON of `/api/v1` for groups and causes: see docs/letters-api.md and the OpenAPI document. */
import type { CampaignFilter, LetterStatus, LetterSummary } from './letter-wire.ts'

/** The fields that groups and causes share. */
type CommonFields = Readonly<{
  title: string
  /** Whether a person chose the title. */
  is_title_pinned: boolean
  error_code: string
  slug: string
  error_class: string
  first_seen_at: string
  /** When a letter last arrived or failed again. */
  last_seen_at: string
  sample_id: string | null
  count: number
  statuses: Readonly<Record<LetterStatus, number>>
  /** Letters per hour over 24 hours, the current hour last. */
  trend: Readonly<{ from: string; counts: readonly number[] }>
}>

export type LetterGroup = CommonFields &
  Readonly<{
    id: number
    queue: string
    fingerprint: string
    /** Equal for groups of all dead queues with the same cause. */
    cause_id: string
    /** Requests with the ids of these groups mean this group. */
    merged_ids: readonly number[]
    origin: string
    lifecycle: GroupLifecycle
  }>

/** The decision of a person about a group. A resolved group that gets a letter is regressed. */
export type GroupLifecycle = Readonly<{
  state: string
  changed_at: string | null
  muted_until: string | null
  actor: string | null
  note: string
}>
export type GroupsPage = Readonly<{ groups: readonly LetterGroup[]; next_cursor: string | null }>
export type GroupReport = LetterGroup & Readonly<{ sample: LetterSummary | null }>

/** Give one of `pattern` (RE2, on the error message) and `json_path` (in a JSON payload). */
export type GroupingRule = Readonly<{
  /** Lower-case letters and underscores. A variable is shown as `<name>`, a code as `name=value`. */
  name: string
  as: 'variable' | 'code'
  pattern?: string
  json_path?: string
}>
export type GroupingRulesPreview = Readonly<{
  examined_count: number
  changed_count: number
  group_count_before: number
  group_count: number
  groups: readonly Readonly<{ title: string; count: number }>[]
  examples: readonly Readonly<{ id: string; title_before: string; title: string }>[]
}>

/** Background work on groups. */
export type GroupJob = Readonly<{
  id: string
  kind: 'regroup' | 'split'
  state: 'running' | 'done' | 'cancelled'
  queue: string
  group_id: number | null
  new_group_id: number | null
  filter: CampaignFilter
  total_count: number
  examined_count: number
  moved_count: number
  actor: string
  reason: string
  created_at: string
  updated_at: string
}>
export type GroupJobsPage = Readonly<{ jobs: readonly GroupJob[]; next_cursor: string | null }>

/** The same failure in all dead queues. */
export type Cause = CommonFields &
  Readonly<{
    id: string
    /** The dead queues with the most letters of this cause; at most 100. */
    queues: readonly Readonly<{ queue: string; count: number; group_ids: readonly number[] }>[]
    queue_count: number
  }>
export type CausesPage = Readonly<{ causes: readonly Cause[]; next_cursor: string | null }>
export type CauseReport = Cause & Readonly<{ sample: LetterSummary | null }>
