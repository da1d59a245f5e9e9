/** Calls for groups of letters and their causes (`/api/v1/groups`, `/api/v1/causes`). */

import type { Caller, CallOptions } from '../http/caller.ts'
import { toQueryString } from '../http/query.ts'
import type { AuditedOptions } from '../queues/admin-calls.ts'
import type {
  CauseReport,
  CausesPage,
  GroupingRule,
  GroupingRulesPreview,
  GroupJob,
  GroupJobsPage,
  GroupReport,
  GroupsPage,
} from './group-wire.ts'
import type { CountedFilter, LetterFilter, Page } from './letter-wire.ts'

export interface GroupCalls {
  listGroups(
    query?: CountedFilter &
      Page &
      Readonly<{ include_empty?: boolean; lifecycle?: string | readonly string[] }>,
    options?: CallOptions,
  ): Promise<GroupsPage>
  getGroup(id: number, options?: CallOptions): Promise<GroupReport>
  /** The causes of dead letters over all dead queues, the one with the most letters first. */
  listCauses(query?: CountedFilter & Page, options?: CallOptions): Promise<CausesPage>
  getCause(id: string, options?: CallOptions): Promise<CauseReport>

  /** Merges groups of the same dead queue into `id`. Calls with their ids mean this group from then on. */
  mergeGroups(id: number, groupIds: readonly number[], options?: AuditedOptions): Promise<GroupReport>
  /** Merges causes of all dead queues into `id`; the groups of each queue stay apart. */
  mergeCauses(id: string, causeIds: readonly string[], options?: AuditedOptions): Promise<CauseReport>
  /** Pins the title of a group; null shows the learned title again. */
  updateGroup(id: number, changes: TitleChange, options?: AuditedOptions): Promise<GroupReport>
  /** Pins the title of all groups of a cause. */
  updateCause(id: string, changes: TitleChange, options?: AuditedOptions): Promise<CauseReport>

  /** The rules by which the letters of a dead queue are grouped. */
  listGroupingRules(queue: string, options?: CallOptions): Promise<readonly GroupingRule[]>
  /** Replaces the rules. `regroupQueue` applies them to existing letters. */
  setGroupingRules(
    queue: string,
    rules: readonly GroupingRule[],
    options?: AuditedOptions,
  ): Promise<readonly GroupingRule[]>
  /** Shows the effect of rules on the newest letters, without changing anything. */
  previewGroupingRules(
    queue: string,
    rules: readonly GroupingRule[],
    options?: CallOptions & Readonly<{ limit?: number }>,
  ): Promise<GroupingRulesPreview>
  /** Starts a job that groups all letters of a dead queue again. */
  regroupQueue(queue: string, options?: AuditedOptions): Promise<GroupJob>
  /** Starts a job that moves the letters of a group that match the filter to a new group. */
  splitGroup(
    id: number,
    filter: LetterFilter,
    options?: AuditedOptions & Readonly<{ title?: string }>,
  ): Promise<GroupJob>
  listGroupJobs(query?: Page, options?: CallOptions): Promise<GroupJobsPage>
  getGroupJob(id: string, options?: CallOptions): Promise<GroupJob>
  cancelGroupJob(id: string, options?: AuditedOptions): Promise<GroupJob>
}

export type TitleChange = Readonly<{ title: string | null }>

export function createGroupCalls(call: Caller): GroupCalls {
  const get = async <T>(path: string, query: object, options?: CallOptions): Promise<T> => {
    const request = {
      method: 'GET',
      path: `/api/v1/${path}${toQueryString(query)}`,
      isRepeatable: true,
    } as const
    return (await call(request, options)).body as T
  }
  const send = async <T>(
    method: 'POST' | 'PATCH' | 'PUT',
    path: string,
    body: object,
    { reason, ...options }: AuditedOptions = {},
  ): Promise<T> => {
    const request = {
      method,
      path: `/api/v1/${path}`,
      body: { ...body, reason },
      isRepeatable: true,
    } as const
    return (await call(request, options)).body as T
  }
  const start = async <T>(
    path: string,
    body: object,
    { reason, ...options }: AuditedOptions = {},
  ): Promise<T> => {
    const sent = { ...body, reason }
    return (await call({ method: 'POST', path: `/api/v1/${path}`, body: sent, isRepeatable: false }, options))
      .body as T
  }
  const idPath = (id: string | number) => encodeURIComponent(id)

  const rulesPath = (queue: string) => `queues/${idPath(queue)}/grouping-rules`

  return {
    listGroups: (query = {}, options) => get('groups', query, options),
    getGroup: (id, options) => get(`groups/${idPath(id)}`, {}, options),
    listCauses: (query = {}, options) => get('causes', query, options),
    getCause: (id, options) => get(`causes/${idPath(id)}`, {}, options),
    mergeGroups: (id, groupIds, options) =>
      send('POST', `groups/${idPath(id)}/merge`, { group_ids: groupIds }, options),
    mergeCauses: (id, causeIds, options) =>
      send('POST', `causes/${idPath(id)}/merge`, { cause_ids: causeIds }, options),
    updateGroup: (id, { title }, options) => send('PATCH', `groups/${idPath(id)}`, { title }, options),
    updateCause: (id, { title }, options) => send('PATCH', `causes/${idPath(id)}`, { title }, options),
    listGroupingRules: async (queue, options) =>
      (await get<{ rules: GroupingRule[] }>(rulesPath(queue), {}, options)).rules,
    setGroupingRules: async (queue, rules, options) =>
      (await send<{ rules: GroupingRule[] }>('PUT', rulesPath(queue), { rules }, options)).rules,
    previewGroupingRules: (queue, rules, { limit, ...options } = {}) =>
      send('POST', `${rulesPath(queue)}/preview`, { rules, limit }, options),
    // Not repeated after a lost answer: each call starts a job.
    regroupQueue: (queue, options) => start(`queues/${idPath(queue)}/regroup`, {}, options),
    splitGroup: (id, filter, { title, ...options } = {}) =>
      start(`groups/${idPath(id)}/split`, { filter, title }, options),
    listGroupJobs: (query = {}, options) => get('group-jobs', query, options),
    getGroupJob: (id, options) => get(`group-jobs/${idPath(id)}`, {}, options),
    cancelGroupJob: (id, options) => send('POST', `group-jobs/${idPath(id)}/cancel`, {}, options),
  }
}
