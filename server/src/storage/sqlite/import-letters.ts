import type { Cause } from '../../core/cause.ts'
import { type Instant, later } from '../../core/instant.ts'
import { newLetterFacts } from '../../core/letter.ts'
import { redrivesCounted } from '../letter-store.ts'
import type { Bound } from './database.ts'
import { hasSource } from './items.ts'
import type { SentImported, SentLetter, SentLetters } from './sent-letters.ts'
import { valuesPerLetter } from './sent-letters.ts'
import type { Transaction } from './transaction.ts'

/** All that is the same in every letter that is new stands in the statement: less is bound, and what is null costs nothing. */
const insertSql = `insert into items (queue_id, partition, id, root_id, source_id, state, attempts, attempts_max, priority,
    kind, encoding, reference, key, headers, created_at, updated_at, expire_deadline, died_at, failure, origin, redrives,
    group_id, letter_state, letter_redrives, redrive_at, history, key_run, payload)
  values (?1, ?2, ?3, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14, ?15, ?16, ?17, ?18, ?19, 0, ?20, ?21, ?22,
    ?23, ?24)
  on conflict (queue_id, source_id) where source_id is not null do nothing`
const thereSql = 'select root_id from items where queue_id = ? and source_id = ?'

/** `importItems` for letters that are new: the same rows, the same counts. */
export function importLetters(transaction: Transaction, sent: SentLetters): SentImported {
  const { database, book, groups, keyRuns, tally } = transaction
  const { partition, now, causes } = sent
  const known = book.at(sent.queue, partition)
  const ids = book.nextIds(known, partition, now, sent.count, tally)
  const redriveAt = newLetterFacts(now, known.queue.redrive, 0.5).nextRedriveAt
  const groupIds: (number | undefined)[] = []
  const answer: (string | number | null)[] = []
  let bytesAt = 0
  let stored = 0
  const takeBytes = (length: number): Uint8Array => {
    bytesAt += length
    return sent.bytes.subarray(bytesAt - length, bytesAt)
  }
  for (const [index, id] of ids.entries()) {
    const [
      sourceId,
      attempts,
      attemptsMax,
      priority,
      kind,
      encoding,
      reference,
      headers,
      givenDeadline,
      givenDiedAt,
      failure,
      origin,
      history,
      redrives,
      causeAt,
      keyBytes,
      payloadBytes,
    ] = sent.values.slice(index * valuesPerLetter, (index + 1) * valuesPerLetter) as unknown as SentLetter
    const key = keyBytes === null ? null : takeBytes(keyBytes)
    const payload = takeBytes(payloadBytes)
    const expireDeadline = givenDeadline ?? later(now, known.queue.expireUs)
    const diedAt: Instant = givenDiedAt ?? now
    // A group is not made for a letter that is not kept.
    groupIds[causeAt] ??= groups.idOfCause(
      known,
      causes[causeAt] as Cause,
      diedAt,
      () => !hasSource(transaction, known, sourceId),
    )
    const groupId = groupIds[causeAt]
    const values: Bound[] = [
      known.id,
      partition,
      id,
      sourceId,
      attempts,
      attemptsMax,
      priority,
      kind,
      encoding,
      reference,
      key,
      headers,
      now,
      expireDeadline,
      diedAt,
      failure,
      origin,
      redrives,
      groupId ?? null,
      Math.min(redrives, redrivesCounted),
      redriveAt,
      history,
      key && keyRuns.next(),
      payload,
    ]
    if (groupId === undefined || database.run(insertSql, ...values) === 0) {
      const there = database.array(thereSql, known.id, sourceId)
      answer.push(null, there?.[0] as string, expireDeadline)
      continue
    }
    answer.push(id, null, expireDeadline)
    tally.letters.change(known.id, groupId, 'waiting', redrives, diedAt, 1)
    tally.letters.arrive(known.id, groupId, diedAt)
    stored++
  }
  tally.add(known.id, partition, 'accepted', stored)
  tally.addWaiting(known.id, partition, now, stored)
  return { createdAt: now, values: answer }
}
