/**
 * Deletes queues in steps of one transaction each. The first step that leaves something also records the
 * deletion. If the server dies, or the call fails, a pass of any server finishes it: the caller may have no
 * answer, but a queue that is half deleted is never left so.
 *
 * Two servers that delete the same queue do no harm: each step deletes what is left, and the last one finds
 * that the queue is gone.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import { addDuration, usPerSecond } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import type { DeleteQueueResult, QueueDeletion } from '../../storage/contract/queues.ts'
import type { Attribution, Engine } from '../engine.ts'
import { readWithin } from '../timing/deadline.ts'
import { createAuditContext, type QueueAdminParts, stepItemsMax } from './queue-admin-parts.ts'

/** A deletion whose last step is younger is in progress: its server still works on it. */
const quietUs = 15 * usPerSecond
const deletionsMax = 100

type Target = Readonly<{ name: QueueName; createdAt: number | undefined; isForced: boolean }>

export function createDeletions(
  parts: QueueAdminParts,
): Pick<Engine, 'deleteQueue' | 'finishQueueDeletions'> {
  const { storage, clock, batchMsMax, onError } = parts
  return {
    deleteQueue: async (name, attribution, { isForced } = { isForced: false }) => {
      const queue = await readWithin(batchMsMax, storage.getQueue(name))
      await deleteInSteps(parts, { name, createdAt: queue?.createdAt, isForced }, attribution)
    },
    finishQueueDeletions: async () => {
      const before = addDuration(clock.now(), -quietUs)
      const pending = await readWithin(batchMsMax, storage.listQueueDeletions(deletionsMax))
      for (const deletion of pending) {
        if (deletion.at <= before) await finish(parts, deletion).catch(onError)
      }
    },
  }
}

/** Another server may have finished it in the meantime. */
async function finish(parts: QueueAdminParts, deletion: QueueDeletion): Promise<void> {
  try {
    await deleteInSteps(parts, deletion, deletion.attribution ?? undefined)
  } catch (error) {
    if (!(error instanceof KnownError) || error.code !== 'QUEUE_NOT_FOUND') throw error
  }
}

async function deleteInSteps(
  parts: QueueAdminParts,
  { name, createdAt, isForced }: Target,
  attribution: Attribution | undefined,
): Promise<void> {
  const { writer, clock, runtimes, announcer } = parts
  let steps = 0
  for (let isMore = true; isMore; ) {
    const act = createAuditContext(parts, attribution, 'queue.delete', isForced ? { isForced } : {})
    const pending = { at: clock.now(), attribution: attribution ?? null }
    const step = { name, isForced, countMax: stepItemsMax, pending }
    const command = {
      op: 'delete-queue',
      ...step,
      ...(createdAt !== undefined && { createdAt }),
      ...act,
    } as const
    const done = await writer.write([command]).catch(async (error: unknown) => {
      if (createdAt !== undefined) await forgetRefused(parts, name, createdAt, error)
      return endIfDeleted(steps, error)
    })
    isMore = done[0].isMore
    steps++
  }
  await runtimes.onDeleted(name)
  // Leases that wait for its items on other servers end.
  announcer.add(name)
}

/** A refused deletion must not happen later, when the reason for the refusal is gone. */
async function forgetRefused(
  { writer }: QueueAdminParts,
  name: QueueName,
  createdAt: number,
  error: unknown,
): Promise<void> {
  const isRefused =
    error instanceof KnownError && (error.code === 'QUEUE_IN_USE' || error.code === 'QUEUE_HOLDS_LETTERS')
  if (isRefused) await writer.write([{ op: 'cancel-queue-deletion', name, createdAt }])
}

/** Another call may delete the queue between two steps of this one. */
function endIfDeleted(steps: number, error: unknown): readonly [DeleteQueueResult] {
  if (steps > 0 && error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') {
    return [{ removed: 0, isMore: false }]
  }
  throw error
}
