/**
 * Alerts: the rules, their evaluation, and what people decide about alerts.
 *
 * One server of a cluster evaluates all rules, under a fenced lock. Each pass reads a bounded state
 * (`read-facts.ts`), plans with the pure rules of `core/alerts/`, and writes changed alerts, the notices that
 * it has read and the notifications in one transaction. So a server that is killed has written either all of
 * them or nothing, and two servers never notify twice.
 */
import type { Alert } from '../../core/alerts/alert.ts'
import type { Attribution } from '../../engine/engine.ts'
import type { AlertRules } from './rules.ts'

export interface Alerts {
  readonly rules: AlertRules
  /** Evaluates all rules, if no other server does. */
  pass(): Promise<void>
  /**
   * Records the decision of a person, with its audit row. Rejects with ALERT_NOT_FOUND, and with ALERT_STATE
   * for an alert that does not fire.
   */
  decide(id: string, decision: Decision, attribution: Attribution): Promise<Alert>
  /** Gives the lock to another server. */
  close(): Promise<void>
}

/**
 * `mute`: no notifications until `until`. `resolve`: the alert does not fire again before its condition was
 * false.
 */
export type Decision = Readonly<
  { action: 'acknowledge' | 'resolve'; note: string } | { action: 'mute'; note: string; until: number }
>
