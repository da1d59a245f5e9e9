type Entry = Readonly<{
  status: number
  hint: string
  /** What callers are told where the sentence is for those who run the server: it may say where the store is. */
  told?: string
}>

/**
 * One catalogue for everything we foresee going wrong. Each dialect renders it in its own way; the
 * code, the status and the hint are decided here. `docs/errors.md` is printed from this table.
 */
const catalog = {
  BAD_REQUEST: { status: 400, hint: 'Correct the request as the message says and send it again.' },
  BODY_TOO_LARGE: { status: 413, hint: 'Send fewer or smaller items per request.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, hint: 'Send the body as JSON with Content-Type: application/json.' },
  URL_TOO_LONG: { status: 414, hint: 'Send long values in the body, or ask for less at once.' },
  HEADERS_TOO_LARGE: { status: 431, hint: 'Send fewer or shorter headers, for example fewer cookies.' },
  REQUEST_TIMEOUT: { status: 408, hint: 'Send the whole request sooner, or in smaller parts.' },
  HOST_REFUSED: {
    status: 403,
    hint: 'Without access control only this machine is served: call http://127.0.0.1 or http://localhost.',
  },
  NOT_FOUND: { status: 404, hint: 'See /docs for the paths that exist.' },
  METHOD_NOT_ALLOWED: { status: 405, hint: 'The Allow header lists the methods of this path.' },
  INTERNAL: { status: 500, hint: 'Look in the log for the request id, then report it.' },
  SHUTTING_DOWN: { status: 503, hint: 'Send the request to another server, or again in a moment.' },
  STORE_UNAVAILABLE: {
    status: 503,
    told: 'the store cannot be reached',
    hint: 'The server keeps trying to reach its store; repeat the request.',
  },
  STORE_REFUSED: {
    status: 500,
    told: 'the store refuses this server',
    hint: 'Check the user, the password and the database name, and what the user may do.',
  },
  STORE_FULL: {
    status: 507,
    told: 'the store has no space left; nothing of this write was kept',
    hint: 'Free space on the disk of the store. Nothing was lost; repeat the request then.',
  },
  STORE_URL_INVALID: {
    status: 500,
    told: 'the store cannot be used',
    hint: 'Use a path, sqlite:<path>, :memory: or postgres://user@host:5432/database.',
  },
  STORE_LOCKED: {
    status: 500,
    told: 'the store is in use by another program',
    hint: 'A SQLite file serves one server. Stop the other one, or use PostgreSQL for several.',
  },
  STORE_MISSING: {
    status: 500,
    told: 'the store is not there',
    hint: 'Check --store; redrive serve and redrive migrate make a new store.',
  },
  STORE_UNWRITABLE: {
    status: 500,
    told: 'the store cannot be written to',
    hint: 'Give the user that runs Redrive write access to the folder.',
  },
  STORE_NOT_OURS: {
    status: 500,
    told: 'the store is not one of Redrive',
    hint: 'Point --store at a new file or database, or at one made by Redrive.',
  },
  SCHEMA_NEWER: {
    status: 500,
    told: 'the store was written by a newer Redrive',
    hint: 'Run the Redrive version that wrote this store, or a newer one.',
  },
  QUEUE_NOT_FOUND: { status: 404, hint: 'Create the queue first, or check its name.' },
  QUEUE_EXISTS: { status: 409, hint: 'Choose another name, or update the existing queue.' },
  QUEUE_IN_USE: { status: 409, hint: 'Change the queues that name it as their dead queue first.' },
  QUEUE_HOLDS_LETTERS: {
    status: 409,
    hint: 'Send the letters back or discard them first. With force (queue.clear: destructive) they are erased for good.',
  },
  PARTITION_NOT_FOUND: { status: 400, hint: 'Partitions are numbered from 0 to one less than their count.' },
  DEAD_QUEUE_INVALID: {
    status: 400,
    hint: 'A dead queue must exist, must not be the queue itself and has none of its own.',
  },
  LEASE_TOO_LONG: {
    status: 400,
    hint: 'Shorten the lease, or let items wait for longer before they expire.',
  },
  QUEUE_OVERLOADED: {
    status: 429,
    hint: 'Send fewer requests at once, or the same one again in a moment; batches cost less than single items.',
  },
  QUEUE_SHUTTING_DOWN: {
    status: 503,
    hint: 'The queue is being deleted or its server stops: look whether it is still there, then repeat.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 409,
    hint: 'A key stands for one request: take a new one for other items, or repeat the request as it was.',
  },
  CALL_TIMEOUT: { status: 408, hint: 'Nothing was done. Repeat the request, or allow it more time.' },
  LEASE_TIMEOUT: { status: 408, hint: 'There was nothing to do in time. Ask again.' },
  CLIENT_ID_BUSY: { status: 409, hint: 'Give every worker a client id of its own, or wait for its answer.' },
  ITEM_NOT_FOUND: {
    status: 404,
    hint: 'It may be completed, moved or retried: an item that goes back to its queue gets a new id.',
  },
  ITEM_NOT_LEASED: { status: 409, hint: 'Stop work on this item: its lease has ended.' },
  ITEM_ID_INVALID: { status: 400, hint: 'Item ids are 27 letters and digits, as they were given out.' },
  CONTENT_UNREADABLE: {
    status: 400,
    hint: 'Send a body that matches its Content-Type, and accept JSON or protobuf.',
  },
  LETTER_NOT_FOUND: {
    status: 404,
    hint: 'It may be purged from the archive, or the id is of something else.',
  },
  LETTER_NOT_RETRYABLE: {
    status: 409,
    hint: 'Look at its status: only what waits for somebody can be sent back, and never twice at once.',
  },
  LETTER_NOT_DISCARDABLE: {
    status: 409,
    hint: 'Wait for the end of its redrive, or of the lease on it; what is resolved needs no giving up.',
  },
  GROUP_NOT_FOUND: { status: 404, hint: 'GET /api/v1/groups lists those that there are.' },
  TARGET_INVALID: {
    status: 400,
    hint: 'Name a queue that is there and that takes no dead letters of others.',
  },
  TARGET_UNAVAILABLE: {
    status: 503,
    hint: 'Nothing was changed. Make the queue it came from again, or send it to another one.',
  },
  PAGE_TOO_DEEP: {
    status: 400,
    hint: 'Ask again: it goes on from where it got to. Or narrow the list; GET /api/v1/letters pages by cursor.',
  },
  CAMPAIGN_NOT_FOUND: { status: 404, hint: 'GET /api/v1/campaigns lists those that there are.' },
  CAMPAIGN_STATE: { status: 409, hint: 'Look at the state of the campaign: it allows other steps.' },
  CAMPAIGN_CHANGED: {
    status: 409,
    hint: 'Somebody changed the campaign at the same moment. Look at it, then repeat.',
  },
  RETENTION_BUSY: { status: 409, hint: 'One at a time is enough: what it does needs not be done again.' },
  LOCK_LOST: { status: 409, hint: 'Another server took the work over; this one must stop it.' },
  SETTING_INVALID: { status: 500, hint: 'See redrive serve --help for every setting with its bounds.' },
  SECRET_UNAVAILABLE: {
    status: 500,
    told: 'a secret that this server needs cannot be read',
    hint: 'Check the reference, and that the file, variable or Vault path can be read.',
  },
  PROTECTED_MODE: {
    status: 500,
    hint: 'Listen on 127.0.0.1, or configure access control before listening elsewhere.',
  },
  PORT_REFUSED: { status: 500, hint: 'Choose an address of this machine, and a port above 1023.' },
  PORT_TAKEN: { status: 500, hint: 'Stop the other program, or choose another port with --port.' },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof catalog

export const errorCodes = Object.keys(catalog) as readonly ErrorCode[]

export function errorEntry(code: ErrorCode): Readonly<{ status: number; hint: string }> {
  return catalog[code]
}

/** An error we foresaw. Anything else thrown is a defect: logged whole, shown as INTERNAL. */
export class KnownError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly hint: string
  readonly #told: string

  /** `told`: words fit for any caller, where the message may not be. */
  constructor(code: ErrorCode, message: string, cause?: unknown, told?: string) {
    super(message, { cause })
    this.name = 'KnownError'
    this.code = code
    this.status = catalog[code].status
    this.hint = catalog[code].hint
    const { told: usual }: Entry = catalog[code]
    this.#told = told ?? usual ?? message
  }

  /** What whoever called may read. The message is for the log and for the terminal. */
  get told(): string {
    return this.#told
  }
}
