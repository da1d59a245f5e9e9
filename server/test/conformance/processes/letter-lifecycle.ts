/**
 * Runs every action on dead letters, several at a time, until it is killed: moves items to the dead queue,
 * redrives, cancels redrives, completes, kills again, discards, clears, archives, restores, deletes. Prints
 * each action before it starts and after the store acknowledged it.
 */
import { KnownError } from '../../../src/errors.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { bytes, minute, toText } from '../../make.ts'
import { createSeededRandom } from '../../seeded-random.ts'
import { listArchivedLetters, listLetters } from '../support/list-letters.ts'
import { readTask, report, waitForMessage } from './parent-channel.ts'

const task = readTask<{ work: string; letters: string; seed: number; startsAt: number; workers: number }>()
const { work, letters } = task
const { below, pick } = createSeededRandom(task.seed)
report('warm')
await waitForMessage('go')
const storage = await openStorage(task.target)

let now = task.startsAt
let made = 0
const tick = (us = 1): number => {
  now += us
  return now
}
const rules = { isDeadAllowed: true, isCapped: false, actor: 'child' }
const audit = { actor: 'child', action: 'queue.clear', reason: 'clean up', requestId: '', details: {} }
const error = (): object => ({ errorClass: pick(['A', 'B']), message: pick(['HTTP 503: x', 'gone']) })

async function produceDead(): Promise<void> {
  const names = Array.from({ length: 1 + below(6) }, () => `${task.seed}.${++made}`)
  report('doing', { action: 'produceDead' })
  const items = names.map((name) => ({ payload: bytes(name), lease: { holder: 'child' } }))
  const produce = { op: 'produce', queue: work, partition: 0, items, now: tick() } as const
  const [{ ids }] = await storage.write([produce])
  report('produced', { names })
  const dead = ids.map((id) => ({ id, availableAt: null, isDead: true, error: error() }))
  await storage.write([{ op: 'retry', queue: work, partition: 0, items: dead, now: tick() }])
}

async function someLetters(
  states: readonly ('waiting' | 'dead' | 'leased' | 'discarded')[],
): Promise<string[]> {
  const page = await listLetters(storage, {
    filter: { queues: [letters], states },
    order: 'updatedAt',
    isDescending: below(2) === 0,
    countMax: 1 + below(8),
    examinedMax: 100,
    bytes: 'none',
  })
  return page.letters.map(({ rootId }) => rootId)
}

async function redrive(): Promise<void> {
  const ids = await someLetters(['waiting', 'dead'])
  report('doing', { action: 'redrive' })
  const sent = ids.map((letterId) => ({ letterId, queue: null }))
  const [results] = await storage.write([{ op: 'redrive', letters: sent, ...rules, now: tick() }])
  report('did', {
    action: 'redrive',
    letters: results.flatMap((each) => (each.isStarted ? [[each.letterId, each.number]] : [])),
  })
}

/** Other workers lease the items of these letters at the same time. */
async function cancel(): Promise<void> {
  const letterIds = await someLetters(['leased'])
  report('doing', { action: 'cancel' })
  await storage.write([{ op: 'cancel-redrives', letterIds, now: tick() }])
  report('did', { action: 'cancel' })
}

async function settle(): Promise<void> {
  const holders = Array.from({ length: 1 + below(6) }, () => 'child')
  const at = { queue: work, partition: 0 }
  const [leased] = await storage.write([{ op: 'lease', ...at, holders, now: tick() }])
  const [one, two, ...rest] = leased
  const ordinary = leased.filter(({ letterId }) => letterId === null).map(({ payload }) => toText(payload))
  report('doing', { action: 'settle', names: ordinary })
  if (one !== undefined) {
    const [settled] = await storage.write([{ op: 'complete', ...at, ids: [one.id], now: tick() }])
    if (settled.isSettled)
      report('did', { action: 'complete', letterId: one.letterId, number: one.retryCount })
  }
  if (two !== undefined) {
    const [deleted] = await storage.write([{ op: 'delete', ...at, ids: [two.id] }])
    if (deleted.removed > 0) report('did', { action: 'lose', letterId: two.letterId, number: two.retryCount })
  }
  const items = rest.map(({ id }) => ({ id, availableAt: null, isDead: true, error: error() }))
  const [settled] = await storage.write([{ op: 'retry', ...at, items, now: tick() }])
  if (!settled.isSettled) return
  const came = rest.map(({ letterId, retryCount }) => [letterId, retryCount])
  report('did', { action: 'return', letters: came })
}

async function discard(): Promise<void> {
  const ids = (await someLetters(['waiting', 'dead'])).slice(0, 3)
  report('doing', { action: 'discard' })
  const given = ids.map((letterId) => ({ letterId }))
  const [results] = await storage.write([{ op: 'discard', letters: given, reason: 'child', now: tick() }])
  report('did', {
    action: 'discard',
    letters: results.flatMap((each) => (each.isDiscarded ? [[each.letterId, 0]] : [])),
  })
}

/** A clear of the dead queue discards its letters. Other workers act on the same letters. */
async function clear(): Promise<void> {
  report('doing', { action: 'clear' })
  const what = { isWaiting: true, isScheduled: true, isLeased: below(2) === 0, countMax: 1 + below(20) }
  await storage.write([{ op: 'clear', queue: letters, ...what, now: tick(), audit: { ...audit, at: now } }])
  report('did', { action: 'clear' })
}

/** Refused if one of the letters is being redriven. */
async function deleteLetters(): Promise<void> {
  const ids = (await storage.getLetters(await someLetters(['waiting', 'dead', 'discarded'])))
    .filter(({ partition }) => partition === 0)
    .map(({ id }) => id)
  report('doing', { action: 'delete' })
  const command = { op: 'delete', queue: letters, partition: 0, ids, now: tick() } as const
  await storage.write([{ ...command, audit: { ...audit, at: now } }]).catch((problem: unknown) => {
    if (!(problem instanceof KnownError) || problem.code !== 'LETTER_NOT_DISCARDABLE') throw problem
  })
  report('did', { action: 'delete' })
}

async function archive(): Promise<void> {
  report('doing', { action: 'archive' })
  const [{ archived }] = await storage.write([
    { op: 'archive', queue: letters, endedBefore: tick(), countMax: 1 + below(6), now: tick() },
  ])
  report('did', { action: 'archive', archived })
}

async function restore(): Promise<void> {
  const rows = await listArchivedLetters(storage, { queues: [letters], countMax: 1 + below(4) })
  const discarded = (await someLetters(['discarded'])).slice(0, 3)
  report('doing', { action: 'restore' })
  const letterIds = [...rows.map(({ item }) => item.rootId), ...discarded]
  await storage.write([{ op: 'restore', letterIds, now: tick() }])
  report('did', { action: 'restore' })
}

async function live(): Promise<void> {
  for (;;) {
    await pick([
      produceDead,
      redrive,
      redrive,
      cancel,
      settle,
      settle,
      discard,
      clear,
      deleteLetters,
      archive,
      archive,
      restore,
      restore,
    ])()
    report('done')
    if (below(10) === 0) await storage.write([{ op: 'advance', now: tick(minute), countMax: 10 }])
  }
}

report('open')
await Promise.all(Array.from({ length: task.workers }, live))
