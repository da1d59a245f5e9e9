/** Calls for groups of letters and their causes (`/api/v1/groups`, `/api/v1/causes`). */
import type { AuditedOptions } from './admin-calls.ts'
import type { Caller, CallOptions } from './caller.ts'
import type { CauseReport, CausesPage, GroupReport, GroupsPage } from './group-wire.ts'
import type { CountedFilter, Page } from './letter-wire.ts'
import { toQueryString } from './query.ts'

export interface GroupCalls {
  listGroups(
    query?: CountedFilter & Page & Readonly<{ include_empty?: boolean }>,
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
    method: 'POST' | 'PATCH',
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
  const idPath = (id: string | number) => encodeURIComponent(id)

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
  }
}
