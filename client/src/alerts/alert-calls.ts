/** Calls for alerts and the decisions of people about them (`/api/v1/alerts`). */
import type { Caller, CallOptions } from '../http/caller.ts'
import { toQueryString } from '../http/query.ts'
import type { AuditedOptions } from '../queues/admin-calls.ts'
import type { Alert, AlertsPage, AlertsQuery } from './alert-wire.ts'

export interface AlertCalls {
  /** Alerts and their history, newest first. */
  listAlerts(query?: AlertsQuery, options?: CallOptions): Promise<AlertsPage>
  getAlert(id: string, options?: CallOptions): Promise<Alert>
  /** A person works on it: it is not notified again. */
  acknowledgeAlert(id: string, options?: NotedOptions): Promise<Alert>
  /** Nothing is notified about it until then. */
  muteAlert(id: string, until: string, options?: NotedOptions): Promise<Alert>
  /** It does not fire again before its condition was false. */
  resolveAlert(id: string, options?: NotedOptions): Promise<Alert>
}

/** `note`: for other people. */
export type NotedOptions = AuditedOptions & Readonly<{ note?: string }>

export function createAlertCalls(call: Caller): AlertCalls {
  const get = async <T>(path: string, options: CallOptions | undefined): Promise<T> =>
    (await call({ method: 'GET', path: `/api/v1/alerts${path}`, isRepeatable: true }, options)).body as T
  const decide = async (
    id: string,
    action: 'acknowledge' | 'mute' | 'resolve',
    { note, reason, ...options }: NotedOptions = {},
    fields: object = {},
  ): Promise<Alert> => {
    const path = `/api/v1/alerts/${encodeURIComponent(id)}/${action}`
    const body = { ...fields, note, reason }
    return (await call({ method: 'POST', path, body, isRepeatable: false }, options)).body as Alert
  }
  return {
    listAlerts: (query = {}, options) => get(toQueryString(query), options),
    getAlert: (id, options) => get(`/${encodeURIComponent(id)}`, options),
    acknowledgeAlert: (id, options) => decide(id, 'acknowledge', options),
    muteAlert: (id, until, options) => decide(id, 'mute', options, { until }),
    resolveAlert: (id, options) => decide(id, 'resolve', options),
  }
}
