/** Jobs by their ids, and the changes of state that a pull consumer makes. */

import type { Item } from '../../../core/items/item.ts'
import { addDuration, type Clock } from '../../../core/time/instant.ts'
import { countRetriesOfDead, type DeliveryRules, inflightUs } from '../../../core/webhook/delivery-policy.ts'
import { parseJobId } from '../../../core/webhook/job-id.ts'
import { formatPullHolder, readIncrementalSeconds } from '../../../core/webhook/pull-lease.ts'
import type { Attribution, Engine } from '../../../engine/engine.ts'
import { isCallersFault } from '../../../errors.ts'
import { pageBytesMax } from '../../../storage/contract/letters.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { Consumer, JobState, Message, TakeJob } from '../../../storage/contract/webhooks.ts'
import type { JobMessage } from './broker.ts'

export type NextState = 'QUEUED' | 'INFLIGHT' | 'DELIVERED' | 'DEAD'
export type FoundJob = Readonly<{ jobId: string; message: Message; state: NonNullable<JobState> }>
export type QueuedJob = Readonly<{
  jobId: string
  priority: number
  incrementalSeconds: number
  message: JobMessage
}>

export interface PullJobs {
  /** `missing`: there is no such job, or it was deleted. `other`: it belongs to another consumer. */
  findJob(consumer: Consumer, jobId: string): Promise<FoundJob | 'missing' | 'other'>
  /** Queued jobs by priority, then age. Ends with the job whose payload reaches `pageBytesMax`. */
  listQueuedJobs(consumer: Consumer, countMax: number): Promise<readonly QueuedJob[]>
  /** False: the change is not allowed, or another request changed the job first. */
  changeJob(
    consumer: Consumer,
    job: FoundJob,
    nextState: NextState,
    incrementalSeconds: number,
    attribution: Attribution,
  ): Promise<boolean>
}

export type PullJobsParts = Readonly<{
  storage: () => StoreReads
  engine: () => Engine
  clock: Clock
  rules: DeliveryRules
  readJobMessages(items: readonly Item[]): Promise<readonly JobMessage[]>
}>

export function createPullJobs(parts: PullJobsParts): PullJobs {
  return {
    findJob: (consumer, jobId) => findJob(parts, consumer, jobId),
    listQueuedJobs: (consumer, countMax) => listQueuedJobs(parts, consumer, countMax),
    changeJob: async (consumer, job, nextState, seconds, attribution) => {
      const { state } = job.state
      if (nextState === 'INFLIGHT' && (state === 'queued' || state === 'dead'))
        return takeJob(parts, consumer, job, seconds, attribution)
      if (state !== 'inflight') return false
      return nextState === 'DELIVERED' || nextState === 'DEAD'
        ? settleJob(parts, consumer, job, nextState)
        : false
    },
  }
}

async function findJob(
  { storage }: PullJobsParts,
  consumer: Consumer,
  jobId: string,
): Promise<FoundJob | 'missing' | 'other'> {
  const position = parseJobId(jobId)
  if (position === undefined) return 'missing'
  const [message] = await storage().readMessages([position.messageNumber])
  const location = message?.jobs[position.position]
  if (message === undefined || location === undefined) return 'missing'
  if (location.consumerNumber !== consumer.number) return 'other'
  const [state] = await storage().readJobs([location])
  return state == null ? 'missing' : { jobId, message, state }
}

/** Jobs that are due, and behind them jobs whose next attempt is not due yet. */
async function listQueuedJobs(
  { storage, readJobMessages }: PullJobsParts,
  { queue }: Consumer,
  countMax: number,
): Promise<readonly QueuedJob[]> {
  if (countMax === 0) return []
  const jobs: QueuedJob[] = []
  let bytes = 0
  // Read messages one after the other: the bytes of a message are known only when they are read.
  for (const listed of await storage().listQueuedItems({ queue, countMax })) {
    const item = listed.letterId === null ? listed : await readRedrive(storage(), listed)
    const [message] = item === undefined ? [] : await readJobMessages([item])
    if (message === undefined) continue
    const incrementalSeconds = readIncrementalSeconds(listed.failure?.worker)
    jobs.push({ jobId: listed.reference, priority: listed.priority, incrementalSeconds, message })
    bytes += message.payload.byteLength
    if (bytes >= pageBytesMax) break
  }
  return jobs
}

/** The redrive of a letter has its own bytes. Undefined: it is not queued any more. */
async function readRedrive(storage: StoreReads, { queue, id }: Item): Promise<Item | undefined> {
  const [item] = await storage.listItems({ queue, ids: [id], countMax: 1 })
  return item
}

async function takeJob(
  { engine, clock, rules }: PullJobsParts,
  { queue }: Consumer,
  { state }: FoundJob,
  seconds: number,
  attribution: Attribution,
): Promise<boolean> {
  const now = clock.now()
  const job = toTakenJob(state, attribution)
  if (job === undefined) return false
  const lease = { holder: formatPullHolder(seconds), deadline: addDuration(now, inflightUs(rules, seconds)) }
  const audit = { at: now, ...attribution, action: 'letter.redrive', details: { queue } }
  const command = { op: 'take-job', queue, job, ...lease, now, audit: audit } as const
  return (await engine().write([command]))[0].isTaken
}

function toTakenJob(
  { item, letterId, failure }: FoundJob['state'],
  { actor }: Attribution,
): TakeJob['job'] | undefined {
  if (item !== null) return { itemId: item.id }
  // The counter grows by 1, and the attempt that begins now is one more than the retries.
  return letterId === null ? undefined : { letterId, actor, attempts: countRetriesOfDead(failure) + 2 }
}

async function settleJob(
  { engine }: PullJobsParts,
  { queue }: Consumer,
  { state: { item } }: FoundJob,
  nextState: 'DELIVERED' | 'DEAD',
): Promise<boolean> {
  if (item === null) return false
  const error = {
    errorCode: 'declared_dead',
    errorClass: 'DeclaredDead',
    message: 'the consumer set the job to DEAD',
  }
  try {
    if (nextState === 'DELIVERED') await engine().complete(queue, 0, [item.id])
    else await engine().retry(queue, 0, [{ id: item.id, isDead: true, error }])
    return true
  } catch (refusal) {
    // Another request, or the end of the lease, changed the job first.
    if (isCallersFault(refusal)) return false
    throw refusal
  }
}
