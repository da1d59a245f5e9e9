/**
 * Calls for dead letters, groups, the archive and the audit log (`/api/v1/letters` and related paths). They
 * return the server's JSON as `/docs` describes it.
 */

import type { Caller, CallOptions } from '../http/caller.ts'
import {
  type MessageHeader,
  type MessageKey,
  type Payload,
  toContent,
  toWireHeader,
} from '../http/content.ts'
import { RedriveError } from '../http/error.ts'
import { type LineReader, StreamInterrupted } from '../http/lines.ts'
import { toQueryString } from '../http/query.ts'
import type { AuditedOptions } from '../queues/admin-calls.ts'
import type { FailureKind } from './failed-call.ts'
import type {
  ArchiveFilter,
  ArchivePage,
  AuditPage,
  AuditQuery,
  CancelResults,
  CaptureResult,
  CountedBy,
  CountedFilter,
  DiscardResults,
  Envelope,
  ExportEnd,
  ExportedLetter,
  LetterCounts,
  LetterDetail,
  LetterFilter,
  LetterOrder,
  LettersPage,
  Page,
  PayloadForm,
  RedriveResult,
  RedriveResults,
  RestoreResults,
} from './letter-wire.ts'

/** Omitted fields stay as in the letter. */
export type Edit = Readonly<{
  payload?: Payload
  /** Null: no key. */
  key?: MessageKey | null
  /** Replaces all headers. */
  headers?: readonly MessageHeader[]
}>

/** Guards of calls that change several letters. */
export type SelectionGuards = Readonly<{
  /** Changes only the letters of the first ids. */
  limit?: number
  /** Rejects with SELECTION_CHANGED, and changes nothing, if another number of the letters exists. */
  expectedCount?: number
}>

export type RedriveOptions = AuditedOptions &
  Readonly<{
    /** The queue to send to, instead of the letter's origin. */
    target?: string
    /** Sends also letters with status DEAD. */
    includeDead?: boolean
  }>

export interface LetterCalls {
  /**
   * Repeated after a lost answer only if every envelope has a `source_id`, which prevents duplicate letters.
   */
  captureLetters(
    queue: string,
    letters: readonly Envelope[],
    options?: CallOptions,
  ): Promise<readonly CaptureResult[]>
  listLetters(query?: LetterFilter & LetterOrder & Page, options?: CallOptions): Promise<LettersPage>
  /** Finds a live or archived letter by id or UUID, or by another id that it had. */
  getLetter(
    id: string,
    options?: CallOptions & Readonly<{ payloadForm?: PayloadForm }>,
  ): Promise<LetterDetail>
  /**
   * Yields every matching letter with all its fields as it arrives. An interrupted export continues after the
   * last letter; it throws after too many interruptions in a row.
   */
  exportLetters(
    filter?: LetterFilter & LetterOrder,
    options?: CallOptions,
  ): AsyncGenerator<ExportedLetter, ExportEnd, undefined>
  countLetters(
    query?: CountedFilter & Readonly<{ by?: readonly CountedBy[] }>,
    options?: CallOptions,
  ): Promise<LetterCounts>

  /**
   * Redrives up to 1,000 letters and returns a result for each. Not repeated if the answer is lost: some
   * redrives may be in progress.
   */
  redriveLetters(ids: readonly string[], options?: RedriveOptions & SelectionGuards): Promise<RedriveResults>
  /**
   * Rejects if the letter cannot be sent now. `edit` sends an edited version: a new one, or an earlier one by
   * its number. The original is kept, and is sent if `edit` is omitted.
   */
  redriveLetter(
    id: string,
    options?: RedriveOptions & Readonly<{ edit?: Edit | number }>,
  ): Promise<RedriveResult & Readonly<{ edit: number | null }>>
  discardLetters(
    ids: readonly string[],
    reason: string,
    options?: CallOptions & SelectionGuards,
  ): Promise<DiscardResults>
  /**
   * Restores discarded and archived letters: by id, all discarded letters that match a filter, or all letters
   * that a campaign discarded.
   */
  restoreLetters(
    letters: readonly string[] | Readonly<{ filter: LetterFilter }> | Readonly<{ campaignId: string }>,
    options?: AuditedOptions & SelectionGuards,
  ): Promise<RestoreResults>
  /**
   * Cancels redrives whose items no worker has leased yet: by letter, or of all letters that a campaign sent.
   */
  cancelRedrives(
    letters: readonly string[] | Readonly<{ campaignId: string }>,
    options?: AuditedOptions & SelectionGuards,
  ): Promise<CancelResults>

  listArchivedLetters(query?: ArchiveFilter & Page, options?: CallOptions): Promise<ArchivePage>
  getArchivedLetter(
    id: string,
    options?: CallOptions & Readonly<{ payloadForm?: PayloadForm }>,
  ): Promise<LetterDetail>

  listAudit(query?: AuditQuery & Page, options?: CallOptions): Promise<AuditPage>
}

export function createLetterCalls(call: Caller, lines: LineReader): LetterCalls {
  const get = async <T>(path: string, query: object, options?: CallOptions): Promise<T> => {
    const request = { method: 'GET', path: `/api/v1/${path}${toQueryString(query)}` } as const
    return (await call({ ...request, isRepeatable: true }, options)).body as T
  }
  const post = async <T>(
    path: string,
    body: object,
    isRepeatable: boolean,
    options?: CallOptions,
  ): Promise<T> =>
    (await call({ method: 'POST', path: `/api/v1/${path}`, body, isRepeatable }, options)).body as T
  const encodeId = (id: string | number) => encodeURIComponent(id)

  return {
    captureLetters: async (queue, letters, options) => {
      const isRepeatable = letters.every(({ source_id }) => source_id !== undefined && source_id !== '')
      const body = { queue, letters }
      return (await post<{ letters: CaptureResult[] }>('letters', body, isRepeatable, options)).letters
    },
    listLetters: (query = {}, options) => get('letters', query, options),
    getLetter: (id, { payloadForm, ...options } = {}) =>
      get(`letters/${encodeId(id)}`, { payload_form: payloadForm }, options),
    exportLetters: (filter = {}, options = {}) => exportAll(lines, filter, options),
    countLetters: ({ by, ...filter } = {}, options) =>
      get('letters/counts', { ...filter, by: by?.join(',') }, options),

    redriveLetters: (ids, { target, includeDead, reason, limit, expectedCount, ...options } = {}) => {
      const guards = { limit, expected_count: expectedCount }
      const body = { ids, target, include_dead: includeDead, reason, ...guards }
      return post('letters/redrive', body, false, options)
    },
    redriveLetter: (id, { target, includeDead, reason, edit, ...options } = {}) => {
      const wireEdit = typeof edit === 'object' ? toWireEdit(edit) : edit
      const body = { target, include_dead: includeDead, reason, edit: wireEdit }
      return post(`letters/${encodeId(id)}/redrive`, body, false, options)
    },
    discardLetters: (ids, reason, { limit, expectedCount, ...options } = {}) =>
      post('letters/discard', { ids, reason, limit, expected_count: expectedCount }, true, options),
    restoreLetters: (letters, { reason, limit, expectedCount, ...options } = {}) => {
      const body = { ...toSelection(letters), reason, limit, expected_count: expectedCount }
      return post('letters/restore', body, true, options)
    },
    cancelRedrives: (letters, { reason, limit, expectedCount, ...options } = {}) => {
      const body = { ...toSelection(letters), reason, limit, expected_count: expectedCount }
      return post('letters/cancel-redrive', body, true, options)
    },

    listArchivedLetters: (query = {}, options) => get('archive', query, options),
    getArchivedLetter: (id, { payloadForm, ...options } = {}) =>
      get(`archive/${encodeId(id)}`, { payload_form: payloadForm }, options),
    listAudit: (query = {}, options) => get('audit', query, options),
  }
}

/** Totals over all tries of an export. `cursor` continues after the last letter that was yielded. */
type ExportProgress = { cursor: string | undefined; letters: number; examined: number }

async function* exportAll(
  lines: LineReader,
  filter: LetterFilter & LetterOrder,
  options: CallOptions,
): AsyncGenerator<ExportedLetter, ExportEnd, undefined> {
  const progress: ExportProgress = { cursor: undefined, letters: 0, examined: 0 }
  for (let tries = 1; ; tries++) {
    const lettersBefore = progress.letters
    try {
      return yield* exportOnce(lines, filter, options, progress)
    } catch (error) {
      const hasProgress = progress.letters > lettersBefore
      // Without a cursor the export could only start again, and would yield the same letters twice.
      if (hasProgress && progress.cursor === undefined && error instanceof StreamInterrupted) {
        throw new RedriveError({ ...error.failed.facts, isRetryable: true })
      }
      if (hasProgress) tries = 1
      await lines.waitBeforeRetry(error, tries, options)
    }
  }
}

/** Throws StreamInterrupted if the stream ends before the export is complete. */
async function* exportOnce(
  lines: LineReader,
  filter: LetterFilter & LetterOrder,
  options: CallOptions,
  progress: ExportProgress,
): AsyncGenerator<ExportedLetter, ExportEnd, undefined> {
  const query = toQueryString({ ...filter, cursor: progress.cursor })
  let letters = 0
  for await (const line of lines.open({ path: `/api/v1/letters/export${query}` }, options)) {
    const entry = JSON.parse(line) as ExportedLetter | { end: ExportEnd }
    if ('end' in entry) return finishExport(entry.end, letters, progress)
    letters++
    progress.letters++
    progress.examined++
    progress.cursor = entry.cursor
    yield entry
  }
  const message = 'the export ended before its last line'
  throw createInterruptedError({ code: 'CONNECTION_LOST', message }, 'lost')
}

/** `letters` were yielded since the stream was opened. */
function finishExport(end: ExportEnd, letters: number, progress: ExportProgress): ExportEnd {
  progress.examined += end.examined_count - letters
  if (end.is_complete) return { ...end, letters: progress.letters, examined_count: progress.examined }
  progress.cursor = end.next_cursor ?? progress.cursor
  throw createInterruptedError(
    end.error ?? { code: 'UNKNOWN', message: 'the export is not complete' },
    'not-done',
  )
}

function createInterruptedError(
  { code, message }: Readonly<{ code: string; message: string }>,
  kind: FailureKind,
): StreamInterrupted {
  const hint = 'Export again. The letters exported so far are valid, but not complete.'
  return new StreamInterrupted({ facts: { code, message, hint, status: 0 }, kind, retryAfterMs: 0 })
}

function toWireEdit({ payload, key, headers }: Edit): object {
  return {
    ...(payload !== undefined && { payload: toContent(payload) }),
    ...(key !== undefined && { key: key === null ? null : toContent(key) }),
    ...(headers !== undefined && { headers: headers.map(toWireHeader) }),
  }
}

type Selection = readonly string[] | Readonly<{ filter: LetterFilter }> | Readonly<{ campaignId: string }>

function toSelection(letters: Selection): object {
  if ('filter' in letters) return { filter: letters.filter }
  return 'campaignId' in letters ? { campaign_id: letters.campaignId } : { ids: letters }
}
