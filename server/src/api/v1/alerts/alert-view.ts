import { type Static, Type } from 'typebox'
import type { Alert, AlertDecision } from '../../../core/alerts/alert.ts'
import { alertSeverities } from '../../../core/alerts/notification.ts'
import { alertStates } from '../../../storage/contract/alerts.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { formatTimeOrNull, nullable, nullableTime, time } from '../values/schemas.ts'

const decision = {
  at: time('When the person decided.'),
  actor: Type.String({ description: 'The person.' }),
  note: Type.String({ description: 'The note for other people; empty: there is none.' }),
}
const DecisionView = component('AlertDecision', Type.Object(decision))
const MuteView = component(
  'AlertMute',
  Type.Object({ ...decision, until: time('When notifications start again.') }),
)

export const AlertView = component(
  'Alert',
  Type.Object({
    id: Type.String({ description: 'Id of the alert.' }),
    rule: Type.String({ description: 'The name of its rule.' }),
    namespace: Type.String({ description: 'The namespace of its subject.' }),
    subject: Type.String({
      description:
        'A queue, group/<id>, a worker <type>/<instance>, <cluster>/<group>/<topic> and so on; *: all subjects ' +
        'beyond a limit.',
    }),
    severity: Type.Enum(alertSeverities, { description: 'How bad it is.' }),
    state: Type.Enum(alertStates, { description: 'pending: its hold time is not over yet.' }),
    summary: Type.String({ description: 'The alert as a sentence.' }),
    queue: nullable(Type.String(), 'The dead queue that it concerns; null: it concerns none.'),
    group_id: nullable(Type.Integer(), 'The group that it concerns; null: it concerns none.'),
    group: nullable(Type.String(), 'The title of the group.'),
    count: nullable(Type.Integer(), 'The number of letters, records or subjects; null: nothing is counted.'),
    sample_error: nullable(Type.String(), 'The error of one of the letters.'),
    started_at: time('When the condition became true.'),
    fired_at: nullableTime('When the hold time was over; null: the alert is pending.'),
    ended_at: nullableTime('When the alert was resolved; null: it was not.'),
    notified_at: nullableTime('When it was last notified; null: it was not.'),
    acknowledged: nullable(DecisionView, 'Who works on it; null: nobody said so.'),
    muted: nullable(MuteView, 'Who muted it, and until when; null: nobody did.'),
    resolved: nullable(DecisionView, 'Who resolved it; null: its condition ended, or it did not end.'),
  }),
)

export function viewAlert(alert: Alert): Static<typeof AlertView> {
  const { muted } = alert
  return {
    id: alert.id,
    rule: alert.rule,
    namespace: alert.namespace,
    subject: alert.subject,
    severity: alert.severity,
    state: alert.state,
    summary: alert.summary,
    queue: alert.queue,
    group_id: alert.groupId,
    group: alert.groupTitle,
    count: alert.count,
    sample_error: alert.sampleError,
    started_at: formatInstant(alert.startedAt),
    fired_at: formatTimeOrNull(alert.firedAt),
    ended_at: formatTimeOrNull(alert.endedAt),
    notified_at: formatTimeOrNull(alert.notifiedAt),
    acknowledged: viewDecision(alert.acknowledged),
    muted: muted === null ? null : { ...viewMade(muted), until: formatInstant(muted.until) },
    resolved: viewDecision(alert.resolved),
  }
}

function viewDecision(made: AlertDecision | null): Static<typeof DecisionView> | null {
  return made === null ? null : viewMade(made)
}

function viewMade({ at, by, note }: AlertDecision): Static<typeof DecisionView> {
  return { at: formatInstant(at), actor: by, note }
}
