import { type Static, Type } from 'typebox'
import type { LetterId } from '../../../core/ids/ids.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { LetterFilter } from '../../../storage/contract/letters.ts'
import { searchMsLong } from '../../../storage/search/pacer.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component, exactlyOneOf } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { checkCount, parseLetterIds } from '../letter-ids.ts'
import { readNumberedPage } from '../numbered-pages.ts'
import { createSuccess, logEvent, Success } from './answer.ts'
import { parseIsoTime } from './iso-time.ts'
import { openStates } from './list.ts'

const Body = component(
  'PurgeSpec',
  exactlyOneOf(
    ['ids', 'older_than'],
    Type.Object(
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
            description: 'With older_than: only letters with this reason. `match` says how it is compared.',
          }),
        ),
        match: Type.Optional(
          Type.Union([Type.Enum(['message', 'code']), Type.Null()], {
            description:
              'How reason is compared. message (default): as the filter of the list, a part of the stored message in any case. code: exactly the reason that the list shows.',
          }),
        ),
        dry_run: Type.Optional(
          Type.Union([Type.Boolean(), Type.Null()], {
            description: 'Only counts the letters that match, and discards none. Default false.',
          }),
        ),
        force: Type.Optional(
          Type.Union([Type.Boolean(), Type.Null()], {
            description: 'Allows an older_than in the future, which selects all open letters. Default false.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ),
)

export const purgeRoute = route({
  method: 'POST',
  path: `${prefix}/purge`,
  operationId: 'dlqPurge',
  errors: ['PAGE_TOO_DEEP'],
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
          purged: Type.Integer({ description: 'Number of letters that were discarded; 0 in a dry run.' }),
          matched: Type.Integer({
            description: 'Number of open letters that matched, also beyond `dlq.purge_limit`.',
          }),
          matched_is_exact: Type.Optional(
            Type.Boolean({
              description:
                'Present only as false: the search was stopped, and `matched` counts the letters found so far.',
            }),
          ),
          dry_run: Type.Boolean({ description: 'True: nothing was discarded.' }),
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
    if ('until' in selection) checkNotInFuture(selection.until, request.body, context.clock.now())
    const letters = context.letters()
    const found =
      'ids' in selection
        ? await findNamed(letters, selection.ids)
        : await findOlder(letters, selection, context.dlqLimits.purgeMax)

    const isDryRun = request.body.dry_run === true
    const attribution = createAttribution(request, describePurge(request.body))
    const results = isDryRun || found.ids.length === 0 ? [] : await letters.discard(found.ids, attribution)
    const purged = results.filter((result) => result.isDiscarded).length
    const { matched, isExact, hasMore } = found
    const facts = {
      purged,
      matched,
      dry_run: isDryRun,
      reason: reason ?? null,
      older_than: older_than ?? null,
    }
    logEvent('dlq.purge', startedMs, facts, request, context)
    return createSuccess({
      purged,
      matched,
      ...(!isExact && { matched_is_exact: false }),
      dry_run: isDryRun,
      ...(hasMore && { has_more: true }),
    })
  },
})

type OlderSelection = Readonly<{ until: Instant; text?: string; slug?: string }>
type Selection = Readonly<{ ids: readonly string[] }> | OlderSelection
/** `ids`: the letters to discard. `matched`: how many match, also above the limit of one call. */
type Found = Readonly<{ ids: readonly LetterId[]; matched: number; isExact: boolean; hasMore: boolean }>

/** Requires exactly one of ids and older_than; an empty list counts as absent. */
function readSelection(body: Static<typeof Body>, countMax: number): Selection {
  const { ids: given, older_than, reason, match } = body
  const ids = given ?? []
  if (ids.length > 0 && typeof older_than === 'string')
    throw createBodyFault('ids', 'cannot be combined with older_than; give one of them')
  if (ids.length > 0) {
    if (reason != null)
      throw createBodyFault('reason', 'cannot be combined with ids; give it with older_than')
    if (match != null) throw createBodyFault('match', 'cannot be combined with ids; give it with reason')
    checkCount(ids, countMax)
    return { ids: parseLetterIds(ids) }
  }
  if (typeof older_than !== 'string') throw createBodyFault('ids', 'or older_than is required')
  const until = parseIsoTime('body.older_than', older_than).first
  return { until, ...readReason(body) }
}

function readReason({ reason, match }: Static<typeof Body>): Pick<OlderSelection, 'text' | 'slug'> {
  if (reason == null) {
    if (match != null)
      throw createBodyFault('match', 'needs a reason; omit match to purge letters with any reason')
    return {}
  }
  const text = reason.trim()
  // An empty variable in a script must not purge all letters.
  if (text === '') throw createBodyFault('reason', 'is empty; omit it to purge letters with any reason')
  return match === 'code' ? { slug: text } : { text }
}

/** A year that is mistyped, or a unit that is mixed up, must not purge all letters. */
function checkNotInFuture(until: Instant, { older_than, force }: Static<typeof Body>, now: Instant): void {
  if (until <= now || force === true) return
  const message = `is ${older_than}, which is in the future; it is now ${formatInstant(now)}. Set force to purge all letters`
  throw createBodyFault('older_than', message)
}

function createBodyFault(field: string, message: string): InvalidRequest {
  return new InvalidRequest([{ field: `body.${field}`, message }])
}

/** Ignores ids of unknown letters, and of letters that are not open. */
async function findNamed(letters: Letters, ids: readonly string[]): Promise<Found> {
  const known = new Set((await letters.resolveIds(ids)).filter((id) => id !== null))
  const open = await letters.selectOpen([...known])
  return { ids: open, matched: open.length, isExact: true, hasMore: false }
}

/** Finds the oldest letters that match. `hasMore`: more may match, or the search ran out of time. */
async function findOlder(
  letters: Letters,
  { until, text, slug }: OlderSelection,
  countMax: number,
): Promise<Found> {
  const filter: LetterFilter = {
    states: openStates,
    died: { until },
    ...(text !== undefined && { text }),
    ...(slug !== undefined && { slugs: [slug] }),
  }
  const found = await letters.list({
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: countMax + 1,
    bytes: 'none',
    msMax: searchMsLong,
  })
  const ids = found.letters.map((letter) => letter.rootId)
  if (found.next === null && ids.length <= countMax)
    return { ids, matched: ids.length, isExact: true, hasMore: false }
  const count = await readNumberedPage(letters, {
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    page: 1,
    pageSize: 1,
  })
  return {
    ids: ids.slice(0, countMax),
    matched: Math.max(count.total, ids.length),
    isExact: count.isExact,
    hasMore: true,
  }
}

/** Describes the selection as the reason in the audit log. */
function describePurge({ older_than, reason, match }: Static<typeof Body>): string {
  if (typeof older_than !== 'string') return 'purge by id'
  const code = match === 'code' ? ' code' : ''
  return `purge older_than ${older_than}${reason == null ? '' : ` reason${code} ${reason}`}`
}
