/**
 * Letters are sent: each becomes leased by its redrive, and its copy an item of the target. A thousand cost as
 * many statements as one: the bytes are copied inside the database.
 */
import { deadPartition } from '../../core/dead-letter.ts'
import { later } from '../../core/instant.ts'
import type { Origin } from '../../core/item.ts'
import { noDeadline, startRedrive, whyNotRedriven } from '../../core/letter.ts'
import { type CampaignLetterState, campaignLetterStates } from '../campaign-store.ts'
import type { NotSent, RedriveLetters, Redriven } from '../letter-store.ts'
import { int4s, int8s, texts, uuids } from './arrays.ts'
import type { Statement } from './connections.ts'
import { type ChangedLetter, type HeldLetter, holdLetters, isId, writeLetters } from './letter-rows.ts'
import type { KnownQueue } from './queues.ts'
import type { Transaction } from './transaction.ts'

type Asked = RedriveLetters['letters'][number]
type Sending = Readonly<{ asked: Asked; held: HeldLetter; target: KnownQueue; partition: number; at: number }>

/** A look without locks, to know which partitions to lock: partitions come before letters. An origin never changes. */
export const peekOrigins: Statement = {
  name: 'peek-origins',
  text: `select w.letter_id, t.origin from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    cross join lateral (
      select f.origin from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
}

const findTargets: Statement = {
  name: 'dead-queues-among',
  text: 'select distinct dead_queue from redrive.queues where dead_queue = any ($1::text[])',
}

export const findTurns: Statement = {
  name: 'find-turns',
  text: `select w.campaign_id, w.place, c.state from unnest($1::text[], $2::int4[]) as w(campaign_id, place)
    cross join lateral (
      select f.state from redrive.campaign_letters f
      where f.place = w.place and f.campaign_id || '' = w.campaign_id offset 0) c`,
}

const findEdits: Statement = {
  name: 'find-edits',
  text: `select e.letter_id, e.number from unnest($1::text[], $2::int4[]) as w(letter_id, number)
    cross join lateral (
      select f.letter_id, f.number from redrive.letter_edits f
      where f.letter_id = w.letter_id and f.number = w.number offset 0) e`,
}

/** `$9`: now. */
export const copyLetters: Statement = {
  name: 'copy-letters',
  text: `insert into redrive.items_live (queue_id, partition, id, letter_id, redrives, created_at, updated_at,
      expire_deadline, due_at, attempts, attempts_max, state, is_sourced, priority, kind, encoding, reference,
      headers, key, payload)
    select m.queue_id, m.partition, m.id, m.letter_id, m.redrives, $9::int8, $9::int8, m.expire_deadline,
      m.expire_deadline, 0, 0, 0, false, t.priority, t.kind, t.encoding, t.reference,
      case when m.edit is null then t.headers else e.headers end,
      case when m.edit is null then t.key else e.key end,
      case when m.edit is null then t.payload else e.payload end
    from unnest($1::uuid[], $2::int4[], $3::int4[], $4::text[], $5::text[], $6::int4[], $7::int8[], $8::int4[])
        as m(uuid, queue_id, partition, id, letter_id, redrives, expire_deadline, edit)
      cross join lateral (
        select f.priority, f.kind, f.encoding, f.reference, f.headers, f.key, f.payload
        from redrive.items_sourced f where f.uuid = m.uuid offset 0) t
      left join lateral (
        select f.headers, f.key, f.payload from redrive.letter_edits f
        where m.edit is not null and f.letter_id = m.letter_id and f.number = m.edit offset 0) e on true`,
}

export async function redriveLetters(transaction: Transaction, command: RedriveLetters): Promise<Redriven[]> {
  const { letters, now, actor } = command
  const targetOf = await lockTargets(transaction, letters)
  const held = await holdLetters(
    transaction,
    letters.map(({ letterId }) => letterId),
  )
  const turns = await turnsOf(transaction, letters)
  const hasEdit = await editsOf(transaction, letters)

  const going = new Set<string>()
  const results: (Redriven | undefined)[] = []
  const sendings: Sending[] = []
  for (const [at, asked] of letters.entries()) {
    const { letterId, campaign } = asked
    const found = held.get(letterId)
    const target = targetOf(asked)
    const why =
      whyNot(command, asked, found, going) ??
      hadTurn(campaign && turns.get(`${campaign.place}/${campaign.id}`)) ??
      whyNotTo(found, target) ??
      (hasEdit(asked) ? undefined : 'no-edit')
    if (found === undefined || typeof target === 'string' || why !== undefined) {
      transaction.campaigns.move(campaign, 'pending', 'skipped', why ?? 'missing', now)
      results[at] = { letterId, isStarted: false, why: why ?? 'missing' }
      continue
    }
    going.add(letterId)
    const partition = deadPartition(found.item.origin?.partition ?? 0, target.queue)
    sendings.push({ asked, held: found, target, partition, at })
  }
  if (sendings.length === 0) return results as Redriven[]

  const nextId = idsFor(transaction, sendings, now)
  const changed: ChangedLetter[] = []
  const ids: string[] = []
  for (const sending of sendings) {
    const { asked, held: letter, target, partition, at } = sending
    const id = nextId(sending)
    ids.push(id)
    const after = startRedrive(letter.item, {
      at: now,
      deadline: noDeadline,
      actor,
      campaign: asked.campaign ?? null,
      target: { kind: 'queue', name: target.queue.name, partition, id },
      edit: asked.edit ?? null,
    })
    const number = after.letter?.redrives[0]?.number ?? 1
    changed.push({ known: letter.known, before: letter.item, after })
    transaction.campaigns.move(asked.campaign, 'pending', 'sent', '', now)
    transaction.tally.addWaiting(target.id, partition, now)
    results[at] = {
      letterId: asked.letterId,
      isStarted: true,
      queue: target.queue.name,
      partition,
      id,
      number,
    }
  }
  await transaction.connection.query(copyLetters, [
    uuids(sendings.map(({ asked }) => asked.letterId)),
    int4s(sendings.map(({ target }) => target.id)),
    int4s(sendings.map(({ partition }) => partition)),
    texts(ids),
    texts(sendings.map(({ asked }) => asked.letterId)),
    int4s(changed.map(({ after }) => after.letter?.redrives[0]?.number ?? 1)),
    int8s(sendings.map(({ target }) => later(now, target.queue.expireUs))),
    int4s(sendings.map(({ asked }) => asked.edit ?? null)),
    now,
  ])
  await writeLetters(transaction, changed)
  return results as Redriven[]
}

function whyNot(
  command: RedriveLetters,
  asked: Asked,
  found: HeldLetter | undefined,
  going: ReadonlySet<string>,
): NotSent | undefined {
  if (found === undefined) return 'missing'
  if (going.has(asked.letterId)) return 'redriving'
  const why = whyNotRedriven(found.item, command, found.known.queue.redrive)
  if (why !== undefined || command.isDueOnly !== true) return why
  const dueAt = found.item.letter?.nextRedriveAt ?? null
  return dueAt === null || dueAt > command.now ? 'not-due' : undefined
}

/** A step that is repeated sends nothing twice: what had its turn has it no more. */
function hadTurn(state: CampaignLetterState | null | undefined): NotSent | undefined {
  switch (state) {
    case null:
    case undefined:
    case 'pending':
      return undefined
    case 'sent':
      return 'redriving'
    case 'resolved':
    case 'discarded':
      return state
    default:
      return 'missing'
  }
}

type Target = KnownQueue | 'no-target' | 'dead-target'

function whyNotTo(found: HeldLetter | undefined, target: Target): NotSent | undefined {
  if (typeof target === 'string') return target
  return target.id === found?.known.id ? 'dead-target' : undefined
}

/** The queues that the letters go to, with the partitions locked that they go to. */
async function lockTargets(
  transaction: Transaction,
  letters: readonly Asked[],
): Promise<(asked: Asked) => Target> {
  const ids = [...new Set(letters.map(({ letterId }) => letterId))].filter(isId)
  const rows =
    ids.length === 0 ? [] : await transaction.connection.query(peekOrigins, [uuids(ids), texts(ids)])
  const origins = new Map(
    rows.map((row) => [row.letter_id as string, JSON.parse(row.origin as string) as Origin]),
  )
  const nameOf = ({ queue, letterId }: Asked): string | undefined => {
    const origin = origins.get(letterId)
    return queue ?? (origin?.kind === 'queue' ? origin.name : undefined)
  }
  const names = [...new Set(letters.map(nameOf))].filter(
    (name) => name !== undefined && isText(name),
  ) as string[]
  const unknown = names.filter((name) => transaction.peek(name) === undefined)
  await transaction.load(unknown)
  const targets = new Map<string, Target>()
  for (const name of names) targets.set(name, transaction.peek(name) ?? 'no-target')
  if (names.length > 0) {
    const dead = await transaction.connection.query(findTargets, [texts(names)])
    for (const row of dead) targets.set(row.dead_queue as string, 'dead-target')
  }
  const targetOf = (asked: Asked): Target => targets.get(nameOf(asked) ?? '') ?? 'no-target'
  const places = new Map<string, { known: KnownQueue; partition: number }>()
  for (const asked of letters) {
    const known = targetOf(asked)
    const origin = origins.get(asked.letterId)
    if (typeof known === 'string' || origin === undefined) continue
    const partition = deadPartition(origin.partition ?? 0, known.queue)
    places.set(`${known.id}/${partition}`, { known, partition })
  }
  await transaction.lockPartitions([...places.values()])
  return targetOf
}

function isText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

async function turnsOf(
  transaction: Transaction,
  letters: readonly Asked[],
): Promise<Map<string, CampaignLetterState>> {
  const places = letters.flatMap(({ campaign }) => (campaign ? [campaign] : []))
  if (places.length === 0) return new Map()
  const rows = await transaction.connection.query(findTurns, [
    texts(places.map(({ id }) => id)),
    int4s(places.map(({ place }) => place)),
  ])
  return new Map(
    rows.map((row) => [
      `${row.place}/${row.campaign_id}`,
      campaignLetterStates[row.state as number] as CampaignLetterState,
    ]),
  )
}

async function editsOf(
  transaction: Transaction,
  letters: readonly Asked[],
): Promise<(asked: Asked) => boolean> {
  const edited = letters.filter(({ edit, letterId }) => edit != null && isId(letterId))
  if (edited.length === 0) return ({ edit }) => edit == null
  const rows = await transaction.connection.query(findEdits, [
    texts(edited.map(({ letterId }) => letterId)),
    int4s(edited.map(({ edit }) => edit ?? null)),
  ])
  const there = new Set(rows.map((row) => `${row.number}/${row.letter_id}`))
  return ({ edit, letterId }) => edit == null || there.has(`${edit}/${letterId}`)
}

/** Ids in the order of the letters, made in one go for each partition. */
function idsFor(
  transaction: Transaction,
  sendings: readonly Sending[],
  now: number,
): (sending: Sending) => string {
  const keyOf = ({ target, partition }: Sending) => `${target.id}/${partition}`
  const counts = new Map<string, { sending: Sending; count: number }>()
  for (const sending of sendings) {
    const place = counts.get(keyOf(sending))
    if (place === undefined) counts.set(keyOf(sending), { sending, count: 1 })
    else place.count++
  }
  const ids = new Map<string, Iterator<string>>()
  for (const [key, { sending, count }] of counts) {
    ids.set(key, transaction.nextIds(sending.target, sending.partition, now, count).values())
  }
  return (sending) => ids.get(keyOf(sending))?.next().value as string
}
