import { type Static, Type } from 'typebox'
import { type Finding, findingRules, findOfWorker, severities } from '../../../core/watching/findings.ts'
import {
  heartbeatSources,
  type ObservationClock,
  readWorkerState,
  type Worker,
  type WorkerRules,
  workerStates,
  workerStatuses,
} from '../../../core/watching/worker.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { formatTimeOrNull, nullable, nullableTime, time } from '../values/schemas.ts'

export const FindingView = component(
  'Finding',
  Type.Object({
    rule: Type.Enum(findingRules, { description: 'The rule that found it.' }),
    severity: Type.Enum(severities, { description: 'How bad it is.' }),
    subject: Type.String({ description: 'The worker, the type of workers, or the lag that it concerns.' }),
    namespace: Type.String({ description: 'The namespace of the subject.' }),
    since: time('When it began.'),
    message: Type.String({ description: 'The finding as a sentence.' }),
  }),
)

export function viewFinding(finding: Finding): Static<typeof FindingView> {
  return { ...finding, since: formatInstant(finding.since) }
}

export const WorkerView = component(
  'Worker',
  Type.Object({
    namespace: Type.String({ description: 'The namespace of the worker.' }),
    type: Type.String({ description: 'The kind of worker.' }),
    instance_id: Type.String({ description: 'Tells the workers of a type apart.' }),
    state: Type.Enum(workerStates, { description: 'The conclusion of the server.' }),
    status: Type.Enum(workerStatuses, { description: 'The status that the worker reported last.' }),
    status_since: time('Since when it reports this status.'),
    source: Type.Enum(heartbeatSources, { description: 'How its heartbeats arrive.' }),
    first_seen_at: time('When its first heartbeat arrived.'),
    last_seen_at: time('When its last heartbeat arrived.'),
    last_message_at: nullableTime(
      'When it last processed a message; null: not yet, or it does not report it.',
    ),
    consumer_lag: nullable(Type.Integer(), 'Messages that wait for it; null: it does not report them.'),
    retry_counts: Type.Record(Type.String(), Type.Integer(), {
      description: 'Failed attempts since it started, by error.',
    }),
    finding: nullable(FindingView, 'Its problem; null: it has none.'),
  }),
)

export function viewWorker(
  worker: Worker,
  clocks: ReadonlyMap<string, ObservationClock>,
  rules: WorkerRules,
): Static<typeof WorkerView> {
  const clock = clocks.get(worker.source)
  const finding = findOfWorker(worker, clock, rules)
  return {
    namespace: worker.namespace,
    type: worker.type,
    instance_id: worker.instanceId,
    state: readWorkerState(worker, clock, rules),
    status: worker.status,
    status_since: formatInstant(worker.statusSince),
    source: worker.source,
    first_seen_at: formatInstant(worker.firstSeenAt),
    last_seen_at: formatInstant(worker.lastSeenAt),
    last_message_at: formatTimeOrNull(worker.lastMessageAt),
    consumer_lag: worker.lag,
    retry_counts: { ...worker.retries },
    finding: finding === null ? null : viewFinding(finding),
  }
}
