/** Decisions of people about alerts. */
import { type Alert, acknowledgeAlert, muteAlert, resolveAlert } from '../../core/alerts/alert.ts'
import { findTextFault } from '../../core/text/storable-text.ts'
import { type Clock, type Instant, toDate } from '../../core/time/instant.ts'
import type { Attribution, Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Alerts, Decision } from './alerts.ts'
import { toAlert, toStoredAlert } from './stored-alert.ts'

/** The pass can change an alert at the same time, but not again and again. */
const attemptsMax = 5

export function createDecide(
  parts: Readonly<{
    storage: () => Pick<StoreReads, 'getAlert'>
    engine: () => Pick<Engine, 'write'>
    clock: Clock
  }>,
): Alerts['decide'] {
  const attempt = async (id: string, decision: Decision, attribution: Attribution): Promise<Alert> => {
    const stored = await parts.storage().getAlert(id)
    if (stored === null) throw new KnownError('ALERT_NOT_FOUND', `there is no alert ${JSON.stringify(id)}`)
    const at = parts.clock.now()
    const alert = toAlert(stored)
    const changed = apply(alert, decision, attribution.actor, at)
    const until = decision.action === 'mute' ? { until: toDate(decision.until).toISOString() } : {}
    const entry = {
      ...attribution,
      namespace: alert.namespace,
      at,
      action: `alert.${decision.action}`,
      target: `alert/${id}`,
      details: { rule: alert.rule, subject: alert.subject, note: decision.note, ...until },
    }
    await parts.engine().write([
      { op: 'put-alerts', alerts: [toStoredAlert(changed)] },
      { op: 'audit', entries: [entry] },
    ])
    return { ...changed, version: changed.version + 1 }
  }
  return async (id, given, attribution) => {
    const decision = { ...given, note: given.note.trim() }
    const fault = findTextFault(decision.note)
    if (fault !== undefined) throw new KnownError('BAD_REQUEST', `the note contains ${fault}`)
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt(id, decision, attribution)
      } catch (error) {
        const isRace = error instanceof KnownError && error.code === 'ALERT_CHANGED'
        if (!isRace || attempts === attemptsMax) throw error
      }
    }
  }
}

function apply(alert: Alert, decision: Decision, by: string, at: Instant): Alert {
  if (alert.state !== 'firing') {
    const message = `alert ${alert.id} is ${alert.state}; only an alert that fires can be changed`
    throw new KnownError('ALERT_STATE', message)
  }
  const { note } = decision
  switch (decision.action) {
    case 'acknowledge':
      return acknowledgeAlert(alert, { at, by, note })
    case 'mute':
      return muteAlert(alert, { at, by, note }, decision.until)
    case 'resolve':
      return resolveAlert(alert, { at, by, note })
  }
}
