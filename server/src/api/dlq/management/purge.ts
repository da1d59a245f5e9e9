import { type Static, Type } from 'typebox'
import type { Instant } from '../../../core/instant.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { LetterCursor } from '../../../storage/contract/letters.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { checkCount, parseLetterIds } from '../letter-ids.ts'
import { parseIsoTime } from './iso-time.ts'
import { logEvent } from './log-event.ts'
import { openStates } from './open-letters.ts'
import { Success, createSuccess } from './success.ts'

const Body = Type.Object(
  {
    ids: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
    older_than: Type.Optional(
      Type.Union([Type.String({ title: 'a time', maxLength: 64 }), Type.Null()], {
        description: 'ISO 8601, included. Of more than `dlq.purge_limit` the oldest are purged.',
      }),
    ),
    reason: Type.Optional(
      Type.Union([Type.String({ maxLength: 1_000 }), Type.Null()], {
        description: 'With older_than: only those with exactly this reason, as the list shows it.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const purgeRoute = route({
  method: 'POST',
  path: `${prefix}/purge`,
  permission: 'letter.discard',
  summary: 'Discards dead letters, by id or by age: they are given up, and stay as tombstones for a while.',
  tag: 'dlq',
  dialect: dlqManagement,
  slowMs: 10_000,
  schema: {
    body: Body,
    response: {
      200: Success(
        Type.Object({
          purged: Type.Integer(),
          has_more: Type.Optional(
            Type.Boolean({ description: 'Only as true: older_than matches more; call again for those.' }),
          ),
        }),
      ),
    },
  },
  handler: async (request, _reply, context) => {
    const startedMs = performance.now()
    const { older_than, reason } = request.body
    const selection = readSelection(request.body, context.dlqLimits.purgeMax)
    const letters = context.letters()
    const { ids, hasMore } =
      'ids' in selection
        ? { ids: await resolveIds(letters, selection.ids), hasMore: false }
        : await findOlder(letters, selection, context.dlqLimits.purgeMax)

    const trace = { actor: request.caller.name, reason: describePurge(request.body), requestId: request.id }
    const results = ids.length === 0 ? [] : await letters.discard(ids, trace)
    const purged = results.filter((result) => result.isDiscarded).length
    // With ids there is no reason that was looked for, whatever was sent.
    const said = 'ids' in selection ? null : (reason ?? null)
    const facts = { purged, reason: said, older_than: older_than ?? null }
    logEvent('dlq.purge', startedMs, facts, request, context)
    return createSuccess({ purged, ...(hasMore && { has_more: true }) })
  },
})

type Selection = Readonly<{ ids: readonly string[] } | { until: Instant; slug: string | null }>

/** Exactly one of the two ways; an empty list counts as none. */
function readSelection(body: Static<typeof Body>, countMax: number): Selection {
  const { ids: given, older_than, reason } = body
  const ids = given ?? []
  if (ids.length > 0 && typeof older_than === 'string')
    throw bodyFault('ids', 'and older_than exclude each other')
  if (ids.length > 0) {
    checkCount(ids, countMax)
    return { ids: parseLetterIds(ids) }
  }
  if (typeof older_than !== 'string') throw bodyFault('ids', 'or older_than is required')
  const until = parseIsoTime('body.older_than', older_than).first
  const slug = reason?.trim().toLowerCase() ?? null
  // An empty variable in somebody's script must not purge everything.
  if (slug === '') throw bodyFault('reason', 'is empty; leave it out to purge whatever the reason')
  return { until, slug }
}

function bodyFault(field: string, message: string): InvalidRequest {
  return new InvalidRequest([{ field: `body.${field}`, message }])
}

/** Unknown ones are passed over. */
async function resolveIds(letters: Letters, ids: readonly string[]): Promise<readonly string[]> {
  return [...new Set((await letters.resolveIds(ids)).filter((id) => id !== null))]
}

const searchMsMax = 5_000

/** The oldest that match. `hasMore`: there are others, or the time was over. */
async function findOlder(
  letters: Letters,
  { until, slug }: Readonly<{ until: Instant; slug: string | null }>,
  countMax: number,
): Promise<{ ids: readonly string[]; hasMore: boolean }> {
  const startedMs = performance.now()
  const filter = { states: openStates, died: { until }, ...(slug !== null && { slugs: [slug] }) }
  const ids: string[] = []
  let after: LetterCursor | null = null
  do {
    const found = await letters.list({
      filter,
      order: 'diedAt',
      isDescending: false,
      ...(after !== null && { after }),
      countMax: countMax + 1 - ids.length,
      bytes: 'none',
    })
    ids.push(...found.letters.map((letter) => letter.rootId))
    after = found.next
  } while (after !== null && ids.length <= countMax && performance.now() - startedMs < searchMsMax)
  return { ids: ids.slice(0, countMax), hasMore: after !== null || ids.length > countMax }
}

/** What the audit log keeps as the reason: what was asked for. */
function describePurge({ older_than, reason }: Static<typeof Body>): string {
  if (typeof older_than !== 'string') return 'purge by id'
  return `purge older_than ${older_than}${reason == null ? '' : ` reason ${reason}`}`
}
