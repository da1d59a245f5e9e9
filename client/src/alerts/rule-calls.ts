/** Calls for the rules of alerts (`/api/v1/alerts/rules`). */
import type { Caller, CallOptions } from '../http/caller.ts'
import type { AuditedOptions } from '../queues/admin-calls.ts'
import type { AlertRule, NewAlertRule } from './rule-wire.ts'

export interface AlertRuleCalls {
  listAlertRules(options?: CallOptions): Promise<readonly AlertRule[]>
  getAlertRule(name: string, options?: CallOptions): Promise<AlertRule>
  /** Creates or replaces a rule, or changes a built-in one. */
  putAlertRule(name: string, rule: NewAlertRule, options?: AuditedOptions): Promise<AlertRule>
  /** A built-in rule gets its built-in values again. */
  deleteAlertRule(name: string, options?: AuditedOptions): Promise<void>
}

export function createAlertRuleCalls(call: Caller): AlertRuleCalls {
  const root = '/api/v1/alerts/rules'
  const pathOf = (name: string) => `${root}/${encodeURIComponent(name)}`
  const get = async <T>(path: string, options: CallOptions | undefined): Promise<T> =>
    (await call({ method: 'GET', path, isRepeatable: true }, options)).body as T
  return {
    listAlertRules: async (options) => (await get<{ rules: readonly AlertRule[] }>(root, options)).rules,
    getAlertRule: (name, options) => get(pathOf(name), options),
    putAlertRule: async (name, rule, { reason, ...options } = {}) => {
      const body = { ...rule, reason }
      return (await call({ method: 'PUT', path: pathOf(name), body, isRepeatable: true }, options))
        .body as AlertRule
    },
    deleteAlertRule: async (name, { reason, ...options } = {}) => {
      await call({ method: 'DELETE', path: pathOf(name), body: { reason }, isRepeatable: false }, options)
    },
  }
}
