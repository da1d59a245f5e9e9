/**
 * Workers, as they are known from their heartbeats, and the time by which their silence is measured.
 *
 * A heartbeat counts when a server receives it: the clock of the sender may be wrong. Silence is measured by
 * an **observation clock**, which stands still while nobody could have received a heartbeat: no server ran,
 * or Redis could not be read. So a restart or an outage of Redis makes no worker missing.
 */
import { type Instant, usPerSecond } from '../time/instant.ts'

export const workerStatuses = ['RUNNING', 'SHUTTING_DOWN', 'STOPPED'] as const
/** The status that a worker reports. */
export type WorkerStatus = (typeof workerStatuses)[number]

export const workerStates = ['RUNNING', 'DRAINING', 'STOPPED', 'MISSING'] as const
/** The conclusion of the server from the heartbeats and from their absence. */
export type WorkerState = (typeof workerStates)[number]

export const heartbeatSources = ['http', 'redis'] as const
/** How a heartbeat arrived. Each source has an observation clock of its own. */
export type HeartbeatSource = (typeof heartbeatSources)[number]

export type WorkerKey = Readonly<{ namespace: string; type: string; instanceId: string }>

export type Heartbeat = WorkerKey &
  Readonly<{
    source: HeartbeatSource
    status: WorkerStatus
    /** By the clock of the server. */
    receivedAt: Instant
    /** By the clock of the worker; null: the worker did not say. */
    sentAt: Instant | null
    /** By the clock of the worker. Null: it processed no message yet. Undefined: it does not report it. */
    lastMessageAt?: Instant | null
    /** Null: the worker did not say. */
    lag: number | null
    /** Failed attempts since the worker started, by error. */
    retries?: Readonly<Record<string, number>>
  }>

export type Worker = WorkerKey &
  Readonly<{
    source: HeartbeatSource
    status: WorkerStatus
    firstSeenAt: Instant
    lastSeenAt: Instant
    /** The time of `lastSeenAt` by the observation clock of the source. */
    lastSeenTick: number
    /** Since when it has the status; a worker that started again has a new one. */
    statusSince: Instant
    /** The time of the newest heartbeat by the clock of the worker. */
    sentAt: Instant | null
    lastMessageAt: Instant | null
    /** From when on the worker has been idle; null: it does not report its messages. */
    idleFrom: Instant | null
    lag: number | null
    retries: Readonly<Record<string, number>>
  }>

/**
 * The time by which the silence of the workers of a source is measured, in microseconds. It is the time of
 * the store without the pauses in which nobody observed the source.
 */
export type ObservationClock = Readonly<{
  name: string
  /** When it was first observed. */
  startedAt: Instant
  observedAt: Instant
  /** The length of all pauses. */
  pausedUs: number
}>

/** A longer time between two observations is a pause. It is shorter than any silence that a rule reports. */
export const observationGapUsMax = 45 * usPerSecond

/** The clock after an observation. A time before the last one changes nothing. */
export function observe(clock: ObservationClock | undefined, name: string, now: Instant): ObservationClock {
  if (clock === undefined) return { name, startedAt: now, observedAt: now, pausedUs: 0 }
  if (now <= clock.observedAt) return clock
  const elapsedUs = now - clock.observedAt
  const pausedUs = clock.pausedUs + (elapsedUs > observationGapUsMax ? elapsedUs : 0)
  return { ...clock, observedAt: now, pausedUs }
}

/** The newest time of the clock. */
export function readTick({ observedAt, pausedUs }: ObservationClock): number {
  return observedAt - pausedUs
}

/** A clock that differs by more than this is wrong; less is the way of a heartbeat through Redis. */
const skewUsMax = 60 * usPerSecond

/**
 * The worker after a heartbeat. Undefined: the heartbeat changes nothing, because it was received before, or
 * is older than the newest one.
 */
export function applyHeartbeat(
  known: Worker | undefined,
  heartbeat: Heartbeat,
  clock: ObservationClock,
): Worker | undefined {
  const { namespace, type, instanceId, source, status, receivedAt, sentAt, lag } = heartbeat
  if (known !== undefined && !isNews(known, heartbeat)) return undefined
  const isNewRun = known === undefined || (known.status === 'STOPPED' && status !== 'STOPPED')
  const statusSince = known === undefined || known.status !== status ? receivedAt : known.statusSince
  const messages = readMessages(isNewRun ? undefined : known, heartbeat)
  return {
    namespace,
    type,
    instanceId,
    source,
    status,
    firstSeenAt: known?.firstSeenAt ?? receivedAt,
    lastSeenAt: receivedAt,
    lastSeenTick: receivedAt - clock.pausedUs,
    statusSince,
    sentAt,
    ...messages,
    lag,
    retries: heartbeat.retries ?? known?.retries ?? {},
  }
}

/** Redis returns the same heartbeat until the worker replaces it: only another one is a sign of life. */
function isNews(known: Worker, { source, sentAt, status, receivedAt }: Heartbeat): boolean {
  if (receivedAt < known.lastSeenAt) return false
  if (source !== 'redis' || known.source !== 'redis') return true
  return sentAt !== known.sentAt || status !== known.status
}

function readMessages(
  known: Worker | undefined,
  { lastMessageAt, receivedAt, sentAt }: Heartbeat,
): Pick<Worker, 'lastMessageAt' | 'idleFrom'> {
  if (lastMessageAt === undefined) return { lastMessageAt: known?.lastMessageAt ?? null, idleFrom: null }
  if (lastMessageAt === null) {
    // Idle since it started: a worker that never gets a message is as suspicious as one that stopped.
    return { lastMessageAt: null, idleFrom: known?.idleFrom ?? receivedAt }
  }
  const skewUs = sentAt === null ? 0 : receivedAt - sentAt
  const at = Math.abs(skewUs) > skewUsMax ? lastMessageAt + skewUs : lastMessageAt
  const bounded = Math.max(0, Math.min(at, receivedAt))
  return { lastMessageAt: bounded, idleFrom: bounded }
}

/**
 * The failed attempts of a heartbeat that were not counted yet, by error. Counts that became smaller belong
 * to a worker that started again.
 */
export function readNewRetries(
  known: Readonly<Record<string, number>> | undefined,
  reported: Readonly<Record<string, number>>,
): readonly Readonly<{ error: string; count: number }>[] {
  const isRestarted = Object.entries(known ?? {}).some(([error, count]) => (reported[error] ?? 0) < count)
  return Object.entries(reported).flatMap(([error, count]) => {
    const before = isRestarted ? 0 : (known?.[error] ?? 0)
    return count > before ? [{ error, count: count - before }] : []
  })
}

/** How long the worker has been silent, in microseconds of its observation clock. */
export function readSilenceUs(worker: Worker, clock: ObservationClock | undefined): number {
  return clock === undefined ? 0 : Math.max(0, readTick(clock) - worker.lastSeenTick)
}

export type WorkerRules = Readonly<{
  missingUs: number
  idleUs: number
  drainingUs: number
  /** A worker that stopped or is missing for this long is forgotten. */
  forgetUs: number
}>

export function readWorkerState(
  worker: Worker,
  clock: ObservationClock | undefined,
  { missingUs }: Pick<WorkerRules, 'missingUs'>,
): WorkerState {
  if (worker.status === 'STOPPED') return 'STOPPED'
  const isSilent = readSilenceUs(worker, clock) > missingUs
  if (worker.status === 'RUNNING') return isSilent ? 'MISSING' : 'RUNNING'
  // The workers of others announce their end in Redis once, and nothing else follows. It is a clean stop.
  return isSilent && worker.source === 'redis' ? 'STOPPED' : 'DRAINING'
}

export function isForgettable(
  worker: Worker,
  clock: ObservationClock | undefined,
  { forgetUs }: Pick<WorkerRules, 'forgetUs'>,
): boolean {
  return readSilenceUs(worker, clock) > forgetUs
}
