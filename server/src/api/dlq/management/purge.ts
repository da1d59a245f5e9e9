import { type Static, Type } from 'typebox'
import type { Instant } from '../../../core/instant.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { LetterCursor } from '../../../storage/contract/letters.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { checkCount, parseLetterIds } from '../letter-ids.ts'
import { createSuccess, logEvent, Success } from './answer.ts'
import { parseIsoTime } from './iso-time.ts'
import { openStates } from './list.ts'

const Body = Type.Object(
  {
    ids: Type.Optional(
      Type.Union([Type.Array(Type.String()), Type.Null()], {
        description: 'The letters to discard, at most `dlq.purge_limit`. Give either ids or older_than.',
      }),
    ),
    older_than: Type.Optional(
      Type.Union([Type.String({ title: 'a time', maxLength: 64 }), Type.Null()], {
        description:
          'Discards open letters that died at or before this ISO 8601 time, the oldest first, at most `dlq.purge_limit`.',
      }),
    ),
    reason: Type.Optional(
      Type.Union([Type.String({ maxLength: 1_000 }), Type.Null()], {
        description: 'With older_than: only letters with exactly this reason, as the list shows it.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const purgeRoute = route({
  method: 'POST',
  path: `${prefix}/purge`,
  permission: 'letter.discard',
  summary: 'Discards dead letters by id or by age. Discarded letters are kept until their retention ends.',
  tag: 'dlq',
  dialect: dlqManagement,
  slowMs: 10_000,
  schema: {
    body: Body,
    response: {
      200: Success(
        Type.Object({
          purged: Type.Integer({ description: 'Number of letters that were discarded.' }),
          has_more: Type.Optional(
            Type.Boolean({ description: 'Present only as true: more letters match. Repeat the call.' }),
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
    // A selection by ids ignores the reason.
    const usedReason = 'ids' in selection ? null : (reason ?? null)
    const facts = { purged, reason: usedReason, older_than: older_than ?? null }
    logEvent('dlq.purge', startedMs, facts, request, context)
    return createSuccess({ purged, ...(hasMore && { has_more: true }) })
  },
})

type Selection = Readonly<{ ids: readonly string[] } | { until: Instant; slug: string | null }>

/** Requires exactly one of ids and older_than; an empty list counts as absent. */
function readSelection(body: Static<typeof Body>, countMax: number): Selection {
  const { ids: given, older_than, reason } = body
  const ids = given ?? []
  if (ids.length > 0 && typeof older_than === 'string')
    throw bodyFault('ids', 'cannot be combined with older_than; give one of them')
  if (ids.length > 0) {
    checkCount(ids, countMax)
    return { ids: parseLetterIds(ids) }
  }
  if (typeof older_than !== 'string') throw bodyFault('ids', 'or older_than is required')
  const until = parseIsoTime('body.older_than', older_than).first
  const slug = reason?.trim().toLowerCase() ?? null
  // An empty variable in a script must not purge all letters.
  if (slug === '') throw bodyFault('reason', 'is empty; omit it to purge letters with any reason')
  return { until, slug }
}

function bodyFault(field: string, message: string): InvalidRequest {
  return new InvalidRequest([{ field: `body.${field}`, message }])
}

/** Ignores unknown ids. */
async function resolveIds(letters: Letters, ids: readonly string[]): Promise<readonly string[]> {
  return [...new Set((await letters.resolveIds(ids)).filter((id) => id !== null))]
}

const searchMsMax = 5_000

/** Finds the oldest letters that match. `hasMore`: more may match, or the search ran out of time. */
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

/** Describes the selection as the reason in the audit log. */
function describePurge({ older_than, reason }: Static<typeof Body>): string {
  if (typeof older_than !== 'string') return 'purge by id'
  return `purge older_than ${older_than}${reason == null ? '' : ` reason ${reason}`}`
}
