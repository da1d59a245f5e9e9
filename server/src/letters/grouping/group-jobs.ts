/**
 * Background work on groups, as durable jobs. A **regroup** job groups all letters of a dead queue again, by
 * the present rules. A **split** moves the letters of a group that match a filter to a new group.
 *
 * A step finds letters with the search, then moves them in one write together with the position of the job
 * and the fence of its lock. So any server can continue, and a crash repeats no step and loses none.
 */
import type { GroupId, LetterId, QueueName } from '../../core/ids/ids.ts'
import { createKsuids } from '../../core/ids/ksuid.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { Attribution } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { PutGroupJob, StoredGroupJob } from '../../storage/contract/groups.ts'
import type { LetterCursor, LetterFilter } from '../../storage/contract/letters.ts'
import type { HeldLock } from '../../storage/contract/locks.ts'
import { searchLetters } from '../../storage/search/search-letters.ts'
import { type Action, createAuditCommand } from '../audit.ts'
import { createHeldLocks, type HeldLocks } from '../campaigns/locks.ts'
import type { LettersLog, LettersParts } from '../parts.ts'

export type GroupJobState = 'running' | 'done' | 'cancelled'
export type GroupJob = Readonly<{
  id: string
  kind: 'regroup' | 'split'
  state: GroupJobState
  queue: QueueName
  /** The group that is split; null for a regroup job. */
  groupId: GroupId | null
  /** The group that a split created. */
  into: GroupId | null
  filter: LetterFilter
  /** Letters to look at, as counted when the job was created. */
  total: number
  examined: number
  moved: number
  /** The last letter that was looked at. */
  after: LetterCursor | null
  actor: string
  reason: string
  createdAt: Instant
  updatedAt: Instant
}>

export interface GroupJobs {
  regroup(queue: QueueName, attribution: Attribution): Promise<GroupJob>
  /** Moves the letters of the group that match the filter to a new group. `title`: null: as the group. */
  split(
    groupId: GroupId,
    filter: LetterFilter,
    title: string | null,
    attribution: Attribution,
  ): Promise<GroupJob>
  get(id: string): Promise<GroupJob | null>
  list(query: Readonly<{ beforeId?: string; countMax: number }>): Promise<readonly GroupJob[]>
  /** Letters that were moved stay where they are. A job that has ended stays as it is. */
  cancel(id: string, attribution: Attribution): Promise<GroupJob>
}

const lettersPerStep = 500
const jobsPerPass = 20
const triesMax = 20

type Parts = Pick<LettersParts, 'storage' | 'engine' | 'clock' | 'random'> &
  Readonly<{ owner: string; log: LettersLog }>

export class GroupJobService implements GroupJobs {
  readonly #parts: Parts
  readonly #locks: HeldLocks
  #lastId: string | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#locks = createHeldLocks(parts)
  }

  close(): Promise<void> {
    return this.#locks.releaseAll()
  }

  async regroup(queue: QueueName, attribution: Attribution): Promise<GroupJob> {
    const found = await this.#parts.storage.getQueue(queue)
    if (found === null) throw new KnownError('QUEUE_NOT_FOUND', `there is no queue named ${queue}`)
    const job = await this.#build('regroup', queue, { queues: [queue] }, attribution)
    await this.#parts.engine.write([
      toPut(job, 0),
      createAuditCommand(this.#parts.clock, attribution, 'group.regroup', [queue], { job: job.id }),
    ])
    return job
  }

  async split(
    groupId: GroupId,
    filter: LetterFilter,
    title: string | null,
    attribution: Attribution,
  ): Promise<GroupJob> {
    const { storage, engine, clock } = this.#parts
    const [group] = await storage.listGroups({
      filter: { groupIds: [groupId] },
      countMax: 1,
      isEmptyToo: true,
    })
    if (group === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${groupId} does not exist`)
    const selected = { ...filter, queues: [group.queue], groupIds: [group.id] }
    const job = await this.#build('split', group.queue, selected, attribution)
    const [created] = await engine.write([
      { op: 'create-split', splitId: job.id, groupId: group.id, title },
    ] as const)
    const started = { ...job, groupId: group.id, into: created.groupId }
    await engine.write([
      toPut(started, 0),
      createAuditCommand(clock, attribution, 'group.split', [`group/${group.id}`], {
        job: job.id,
        into: created.groupId,
        title,
      }),
    ])
    return started
  }

  async get(id: string): Promise<GroupJob | null> {
    const stored = await this.#parts.storage.getGroupJob(id)
    return stored === null ? null : toJob(stored)
  }

  async list(query: Parameters<GroupJobs['list']>[0]): Promise<readonly GroupJob[]> {
    return (await this.#parts.storage.listGroupJobs(query)).map(toJob)
  }

  async cancel(id: string, attribution: Attribution): Promise<GroupJob> {
    const { storage, engine, clock } = this.#parts
    for (let tries = 1; ; tries++) {
      const stored = await storage.getGroupJob(id)
      if (stored === null) throw new KnownError('GROUP_JOB_NOT_FOUND', `there is no job ${id}`)
      const job = toJob(stored)
      if (job.state !== 'running') return job
      const cancelled: GroupJob = { ...job, state: 'cancelled', updatedAt: clock.now() }
      const action: Action = 'group.cancel-job'
      const target = job.groupId === null ? job.queue : `group/${job.groupId}`
      try {
        await engine.write([
          toPut(cancelled, stored.version),
          createAuditCommand(clock, attribution, action, [target], { job: id, moved: job.moved }),
        ])
        return cancelled
      } catch (error) {
        if (!isChanged(error) || tries >= triesMax) throw error
      }
    }
  }

  /** One step of each running job; true if more is left. */
  async pass(): Promise<boolean> {
    const running = await this.#parts.storage.listGroupJobs({ states: ['running'], countMax: jobsPerPass })
    let isMore = false
    for (const stored of running.toReversed()) {
      const lock = await this.#locks.hold(`group-job/${stored.id}`)
      if (lock === null) continue
      if (await this.#runStep(stored, lock)) isMore = true
    }
    return isMore
  }

  async #runStep(stored: StoredGroupJob, lock: HeldLock): Promise<boolean> {
    const { storage, engine, clock, log } = this.#parts
    const job = toJob(stored)
    const { found, examinedCount, next } = await searchLetters(storage, {
      filter: job.filter,
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: lettersPerStep,
      bytes: 'none',
      ...(job.after !== null && { after: job.after }),
    })
    const letterIds: LetterId[] = found.map(({ item }) => item.rootId)
    const { groupId, into } = job
    const split = groupId === null || into === null ? null : { splitId: job.id, groupId, into }
    const step: GroupJob = {
      ...job,
      examined: job.examined + examinedCount,
      after: next ?? job.after,
      updatedAt: clock.now(),
    }
    try {
      const [, { moved }] = await engine.write([
        { op: 'fence', lock },
        { op: 'regroup-letters', letterIds, split, now: clock.now() },
        toPut(step, stored.version),
      ] as const)
      // The number is known only after the write. A crash here loses the number of one step, and no letter.
      const state = next === null ? 'done' : 'running'
      if (moved > 0 || state === 'done')
        await engine.write([toPut({ ...step, state, moved: job.moved + moved }, stored.version + 1)])
      if (state === 'running') return true
      log.info(
        { job: job.id, kind: job.kind, queue: job.queue, moved: job.moved + moved },
        'group job is done',
      )
      await this.#locks.release(lock.name)
      return false
    } catch (error) {
      // A person cancelled the job, or another server took its lock over.
      if (!isChanged(error) && !isLockLost(error)) throw error
      this.#locks.forget(lock.name)
      return true
    }
  }

  async #build(
    kind: GroupJob['kind'],
    queue: QueueName,
    filter: LetterFilter,
    { actor, reason }: Attribution,
  ): Promise<GroupJob> {
    const { storage, clock, random = Math.random } = this.#parts
    const now = clock.now()
    const [id = ''] = createKsuids(this.#lastId, now, 1, random)
    this.#lastId = id
    const { queues, groupIds } = filter
    const counted = { ...(queues !== undefined && { queues }), ...(groupIds !== undefined && { groupIds }) }
    const rows = await storage.countLetters({ filter: counted, by: [] })
    const common = { groupId: null, into: null, examined: 0, moved: 0, after: null }
    const total = rows.reduce((sum, { count }) => sum + count, 0)
    const times = { createdAt: now, updatedAt: now }
    return { id, kind, state: 'running', queue, filter, total, actor, reason, ...common, ...times }
  }
}

function toPut({ id, state, filter, ...rest }: GroupJob, version: number): PutGroupJob {
  const { key, ...conditions } = filter
  const keyBase64 = key === undefined ? {} : { keyBase64: Buffer.from(key).toString('base64') }
  return {
    op: 'put-group-job',
    id,
    version,
    state,
    document: { ...rest, filter: { ...conditions, ...keyBase64 } },
  }
}

function toJob({ id, state, document }: StoredGroupJob): GroupJob {
  const { filter, ...rest } = document as Omit<GroupJob, 'id' | 'state' | 'filter'> & {
    filter: LetterFilter & { keyBase64?: string }
  }
  const { keyBase64, ...conditions } = filter
  const key = keyBase64 === undefined ? {} : { key: new Uint8Array(Buffer.from(keyBase64, 'base64')) }
  return { ...rest, id, state: state as GroupJobState, filter: { ...conditions, ...key } }
}

function isChanged(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'GROUP_JOB_CHANGED'
}

function isLockLost(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'LOCK_LOST'
}
