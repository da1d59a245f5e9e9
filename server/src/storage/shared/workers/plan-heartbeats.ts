/** Plans a batch of heartbeats from the rows that it concerns. Both stores execute the plan. */
import {
  applyHeartbeat,
  type ObservationClock,
  observe,
  readNewRetries,
  type Worker,
} from '../../../core/watching/worker.ts'
import type { RecordHeartbeats, WorkerRetries } from '../../contract/workers.ts'
import { keyOfWorker } from '../rows/worker-rows.ts'

export type HeartbeatPlan = Readonly<{
  workers: readonly Worker[]
  clocks: readonly ObservationClock[]
  /** To add to the stored counts. */
  retries: readonly WorkerRetries[]
  /** Positions of heartbeats. */
  refused: readonly number[]
}>

/**
 * The clocks that the command changes, in an order that all servers share. A server that runs can receive
 * heartbeats over HTTP, so that clock is always one of them.
 */
export function listClocks({ heartbeats, observed }: RecordHeartbeats): readonly string[] {
  return [...new Set(['http', ...observed, ...heartbeats.map(({ source }) => source)])].toSorted()
}

/** `roomMax`: how many unknown workers can be stored. */
export function planHeartbeats(
  command: RecordHeartbeats,
  known: ReadonlyMap<string, Worker>,
  stored: readonly ObservationClock[],
  roomMax: number,
): HeartbeatPlan {
  const byName = new Map(stored.map((clock) => [clock.name, clock]))
  const clocks = listClocks(command).map((name) => observe(byName.get(name), name, command.now))
  for (const clock of clocks) byName.set(clock.name, clock)
  const changed = new Map<string, Worker>()
  const retries = new Map<string, WorkerRetries>()
  let added = 0
  const refused: number[] = []
  for (const [position, heartbeat] of command.heartbeats.entries()) {
    const key = keyOfWorker(heartbeat)
    const before = changed.get(key) ?? known.get(key)
    if (before === undefined && added >= roomMax) {
      refused.push(position)
      continue
    }
    const clock = byName.get(heartbeat.source)
    const after = clock && applyHeartbeat(before, heartbeat, clock)
    if (after === undefined) continue
    if (before === undefined) added++
    if (heartbeat.retries !== undefined) addRetries(retries, heartbeat, before, heartbeat.retries)
    changed.set(key, after)
  }
  return { workers: [...changed.values()], clocks, retries: [...retries.values()], refused }
}

function addRetries(
  sums: Map<string, WorkerRetries>,
  { namespace, type }: Pick<Worker, 'namespace' | 'type'>,
  before: Worker | undefined,
  reported: Worker['retries'],
): void {
  for (const { error, count } of readNewRetries(before?.retries, reported)) {
    const key = `${namespace}\n${type}\n${error}`
    sums.set(key, { namespace, type, error, count: (sums.get(key)?.count ?? 0) + count })
  }
}

/** The errors of a type that are counted one by one. */
export const errorsPerTypeMax = 50
export const otherErrors = '(others)'

/** The counts to add, with those of errors that would be too many under `(others)`. */
export function limitErrors(
  retries: readonly WorkerRetries[],
  stored: readonly Omit<WorkerRetries, 'count'>[],
): readonly WorkerRetries[] {
  const errors = new Map<string, Set<string>>()
  const errorsOf = ({ namespace, type }: Omit<WorkerRetries, 'count' | 'error'>): Set<string> => {
    const key = `${namespace}\n${type}`
    const found = errors.get(key) ?? new Set<string>()
    errors.set(key, found)
    return found
  }
  for (const each of stored) errorsOf(each).add(each.error)
  const sums = new Map<string, WorkerRetries>()
  for (const each of retries) {
    const known = errorsOf(each)
    const isOwn = known.has(each.error) || known.size < errorsPerTypeMax
    const error = isOwn ? each.error : otherErrors
    known.add(error)
    const key = `${each.namespace}\n${each.type}\n${error}`
    sums.set(key, { ...each, error, count: (sums.get(key)?.count ?? 0) + each.count })
  }
  return [...sums.values()]
}
