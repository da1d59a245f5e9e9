/**
 * Actions on the dead jobs of a webhook consumer, which are the open letters of its dead queue. Each step of
 * up to 1,000 letters is a transaction, with its counts and audit rows, so no step blocks other writes for
 * long.
 */
import type { QueueName } from '../core/ids/ids.ts'
import type { Clock } from '../core/time/instant.ts'
import { countRetriesOfDead } from '../core/webhook/delivery-policy.ts'
import type { Attribution } from '../engine/engine.ts'
import type { ListedState } from '../storage/contract/items.ts'
import type { LetterCursor, ListedLetter } from '../storage/contract/letters.ts'
import type { Letters } from './letters.ts'

/** The states of a dead job. */
export const deadJobStates: readonly ListedState[] = ['waiting', 'scheduled', 'dead']

const stepMax = 1_000
/** A caller of a requeue waits for this time; a campaign redrives the rest. */
const requeueMsMax = 20_000

type DeadJobParts = Readonly<{ letters: Letters; clock: Clock }>

/** Redrives all jobs that are dead now. A job that dies again in the meantime is not redriven twice. */
export async function requeueDeadJobs(
  { letters, clock }: DeadJobParts,
  queue: QueueName,
  attribution: Attribution,
): Promise<void> {
  const startedAt = performance.now()
  const filter = { queues: [queue], states: deadJobStates, died: { until: clock.now() } }
  const how = { target: null, edit: null, isDeadAllowed: true, isCapped: false } as const
  for (let after: LetterCursor | undefined; ; ) {
    const page = await readStep(letters, filter, after)
    if (page.letters.length > 0) {
      await letters.redrive(
        page.letters.map(({ rootId }) => rootId),
        how,
        attribution,
      )
    }
    if (page.next === null) return
    after = page.next
    if (performance.now() - startedAt > requeueMsMax) {
      await createCampaign(letters, queue, attribution)
      return
    }
  }
}

async function createCampaign(letters: Letters, queue: QueueName, attribution: Attribution): Promise<void> {
  const spec = {
    name: `Requeue ${queue}`,
    action: 'redrive',
    selection: { filter: { queues: [queue], states: deadJobStates } },
    target: null,
    isDeadAllowed: true,
    canaryCount: 0,
    ratePerSecond: 0,
    rampUs: 0,
    haltRatio: 1,
    haltMin: Number.MAX_SAFE_INTEGER,
    limit: null,
    expectedCount: null,
  } as const
  await letters.campaigns.create(spec, attribution)
}

/** Discards all dead jobs that have used their retries. Returns their number. */
export async function purgeDeadJobs(
  { letters, clock }: DeadJobParts,
  queue: QueueName,
  retriesMax: number,
  attribution: Attribution,
): Promise<number> {
  const filter = { queues: [queue], states: deadJobStates, died: { until: clock.now() } }
  let deleted = 0
  for (let after: LetterCursor | undefined; ; ) {
    const page = await readStep(letters, filter, after)
    const ids = page.letters.filter((letter) => isDeletable(letter, retriesMax)).map(({ rootId }) => rootId)
    if (ids.length > 0) {
      const results = await letters.discard(ids, attribution)
      deleted += results.filter(({ isDiscarded }) => isDiscarded).length
    }
    if (page.next === null) return deleted
    after = page.next
  }
}

/** A dead job can be deleted once all its retries are used. */
export function isDeletable({ failure }: Pick<ListedLetter, 'failure'>, retriesMax: number): boolean {
  return countRetriesOfDead(failure) >= retriesMax
}

function readStep(
  letters: Letters,
  filter: Parameters<Letters['list']>[0]['filter'],
  after: LetterCursor | undefined,
) {
  return letters.list({
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: stepMax,
    bytes: 'none',
    ...(after !== undefined && { after }),
  })
}
