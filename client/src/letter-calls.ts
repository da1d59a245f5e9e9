/** Dead letters, groups and the archive: `/api/v1/letters` and its neighbours. Answers are the JSON that `/docs` describes. */
import { toBase64 } from './base64.ts'
import type { Caller, CallOptions } from './caller.ts'
import { RedriveError } from './error.ts'
import type { Payload } from './item.ts'
import type {
  ArchiveFilter,
  ArchivePage,
  AuditPage,
  CapturedLetter,
  CountedBy,
  CountedFilter,
  DiscardedLetters,
  Envelope,
  ExportEnd,
  ExportedLetter,
  GroupsPage,
  LetterCounts,
  LetterDetail,
  LetterFilter,
  LetterGroup,
  LetterOrder,
  LetterSummary,
  LettersPage,
  Page,
  PayloadForm,
  RestoredLetters,
  SentLetter,
  SentLetters,
} from './letter-wire.ts'
import { type LineReader, StreamCut } from './lines.ts'
import { queryOf } from './query.ts'
import type { CareOptions } from './v1-calls.ts'

/** What is left out is as in the letter. */
export type Edit = Readonly<{
  payload?: Payload
  key?: Payload | null
  /** All of them. */
  headers?: readonly (readonly [name: string, value: Payload | null])[]
}>

export type RedriveOptions = CareOptions &
  Readonly<{
    /** A queue, instead of where it came from. */
    target?: string
    /** Also what is DEAD. */
    isDeadIncluded?: boolean
  }>

export interface LetterCalls {
  /** Repeated when the answer is lost only if every envelope has a `source_id`: that makes it one letter. */
  captureLetters(
    queue: string,
    letters: readonly Envelope[],
    options?: CallOptions,
  ): Promise<readonly CapturedLetter[]>
  letters(query?: LetterFilter & LetterOrder & Page, options?: CallOptions): Promise<LettersPage>
  /** By id or UUID, live or archived. */
  letter(id: string, options?: CallOptions & Readonly<{ payload?: PayloadForm }>): Promise<LetterDetail>
  /**
   * Every letter that matches, whole, as they come. What is cut is taken up again where it was; it throws when
   * that fails too often. The loop's end is the end of the export.
   */
  exportLetters(
    filter?: LetterFilter & LetterOrder,
    options?: CallOptions,
  ): AsyncGenerator<ExportedLetter, ExportEnd, undefined>
  letterCounts(
    query?: CountedFilter & Readonly<{ by?: readonly CountedBy[] }>,
    options?: CallOptions,
  ): Promise<LetterCounts>

  /** Up to 1,000, each by itself. Not repeated when the answer is lost: some may be under way. */
  redriveLetters(ids: readonly string[], options?: RedriveOptions): Promise<SentLetters>
  /**
   * Rejects when it cannot be sent now. With `edit`, that version is sent: a new one, or by its number one that was sent
   * before. The original is kept, and is what goes without `edit`.
   */
  redriveLetter(
    id: string,
    options?: RedriveOptions & Readonly<{ edit?: Edit | number }>,
  ): Promise<SentLetter & Readonly<{ edit: number | null }>>
  discardLetters(ids: readonly string[], reason: string, options?: CallOptions): Promise<DiscardedLetters>
  /** Back from the archive. */
  restoreLetters(ids: readonly string[], options?: CareOptions): Promise<RestoredLetters>

  archivedLetters(query?: ArchiveFilter & Page, options?: CallOptions): Promise<ArchivePage>
  archivedLetter(
    id: string,
    options?: CallOptions & Readonly<{ payload?: PayloadForm }>,
  ): Promise<LetterDetail>

  groups(
    query?: CountedFilter & Page & Readonly<{ include_empty?: boolean }>,
    options?: CallOptions,
  ): Promise<GroupsPage>
  group(id: number, options?: CallOptions): Promise<LetterGroup & Readonly<{ sample: LetterSummary | null }>>

  audit(
    query?: Readonly<{ target?: string; action?: string; actor?: string }> & Page,
    options?: CallOptions,
  ): Promise<AuditPage>
}

export function createLetterCalls(call: Caller, lines: LineReader): LetterCalls {
  const get = async <T>(path: string, query: object, options?: CallOptions): Promise<T> =>
    (await call({ method: 'GET', path: `/api/v1/${path}${queryOf(query)}`, mayBeDoneTwice: true }, options))
      .body as T
  const post = async <T>(
    path: string,
    body: object,
    mayBeDoneTwice: boolean,
    options?: CallOptions,
  ): Promise<T> =>
    (await call({ method: 'POST', path: `/api/v1/${path}`, body, mayBeDoneTwice }, options)).body as T
  const at = (id: string | number) => encodeURIComponent(id)

  return {
    captureLetters: async (queue, letters, options) => {
      const isOne = letters.every(({ source_id }) => source_id !== undefined && source_id !== '')
      return (await post<{ letters: CapturedLetter[] }>('letters', { queue, letters }, isOne, options))
        .letters
    },
    letters: (query = {}, options) => get('letters', query, options),
    letter: (id, { payload, ...options } = {}) => get(`letters/${at(id)}`, { payload }, options),
    exportLetters: (filter = {}, options = {}) => exportAll(lines, filter, options),
    letterCounts: ({ by, ...filter } = {}, options) =>
      get('letters/counts', { ...filter, by: by?.join(',') }, options),

    redriveLetters: (ids, { target, isDeadIncluded, reason, ...options } = {}) =>
      post('letters/redrive', { ids, target, include_dead: isDeadIncluded, reason }, false, options),
    redriveLetter: (id, { target, isDeadIncluded, reason, edit, ...options } = {}) => {
      const wireEdit = typeof edit === 'object' ? toWireEdit(edit) : edit
      const body = { target, include_dead: isDeadIncluded, reason, edit: wireEdit }
      return post(`letters/${at(id)}/redrive`, body, false, options)
    },
    discardLetters: (ids, reason, options) => post('letters/discard', { ids, reason }, true, options),
    restoreLetters: (ids, { reason, ...options } = {}) =>
      post('archive/restore', { ids, reason }, true, options),

    archivedLetters: (query = {}, options) => get('archive', query, options),
    archivedLetter: (id, { payload, ...options } = {}) => get(`archive/${at(id)}`, { payload }, options),
    groups: (query = {}, options) => get('groups', query, options),
    group: (id, options) => get(`groups/${at(id)}`, {}, options),
    audit: (query = {}, options) => get('audit', query, options),
  }
}

async function* exportAll(
  lines: LineReader,
  filter: LetterFilter & LetterOrder,
  options: CallOptions,
): AsyncGenerator<ExportedLetter, ExportEnd, undefined> {
  let cursor: string | undefined
  let letters = 0
  let looked = 0
  for (let tries = 1; ; tries++) {
    let given = 0
    try {
      const request = { path: `/api/v1/letters/export${queryOf({ ...filter, cursor })}` }
      for await (const line of lines.open(request, options)) {
        const read = JSON.parse(line) as ExportedLetter | { end: ExportEnd }
        if (!('end' in read)) {
          given++
          cursor = read.cursor
          yield read
          continue
        }
        const { end } = read
        looked += end.looked - given
        if (end.is_complete) return { ...end, letters: letters + given, looked: looked + given }
        cursor = end.next_cursor ?? cursor
        throw new StreamCut({ facts: { ...factsOf(end), status: 0 }, fate: 'not-done', retryAfterMs: 0 })
      }
      throw cutInTheMiddle()
    } catch (error) {
      // Of a letter that does not say where it stands nobody can tell what comes after: it would be given again.
      if (given > 0 && cursor === undefined && error instanceof StreamCut) {
        throw new RedriveError({ ...error.failed.facts, isRetryable: true })
      }
      letters += given
      looked += given
      if (given > 0) tries = 1
      await lines.restOrFail(error, tries, options)
    }
  }
}

function factsOf({ error }: ExportEnd): Readonly<{ code: string; message: string; hint: string }> {
  const { code = 'UNKNOWN', message = 'the export is not complete' } = error ?? {}
  return { code, message, hint: 'Export again; what was exported so far is right, but not all.' }
}

function cutInTheMiddle(): StreamCut {
  const facts = {
    code: 'CONNECTION_LOST',
    status: 0,
    message: 'the export ended before its last line',
    hint: 'Export again; what was exported so far is right, but not all.',
  }
  return new StreamCut({ facts, fate: 'lost', retryAfterMs: 0 })
}

function toWireEdit({ payload, key, headers }: Edit): object {
  return {
    ...(payload !== undefined && wireBytes('payload', payload)),
    ...(key !== undefined && (key === null ? { key } : wireBytes('key', key))),
    ...(headers !== undefined && {
      headers: headers.map(([name, value]) => ({ name, ...(value !== null && wireBytes('value', value)) })),
    }),
  }
}

function wireBytes(name: string, bytes: Payload): object {
  return typeof bytes === 'string' ? { [name]: bytes } : { [`${name}_base64`]: toBase64(bytes) }
}
