/** The body of every answer of the Queue API that is not a success. */
export type QueueErrorBody = Readonly<{ code: number; code_text?: string; message?: string }>

export type QueueErrorMeaning = Readonly<{ code: string; hint: string; itemId: string | null }>

const itemIdForm = /'([0-9A-Za-z]{27})'/

/**
 * The Queue API has no codes of its own, but its messages are fixed: the first that fits tells the code
 * under which docs/errors.md has the same error.
 */
const meanings: readonly Readonly<{ form: RegExp; code: string; hint: string }>[] = [
  {
    form: /^queue does not exist/,
    code: 'QUEUE_NOT_FOUND',
    hint: 'Create the queue first, or check its name.',
  },
  {
    form: /^invalid queue; .* already exists$/,
    code: 'QUEUE_EXISTS',
    hint: 'Choose another name, or update the existing queue.',
  },
  {
    form: /^dead.queue /,
    code: 'DEAD_QUEUE_INVALID',
    hint: 'A dead queue must exist, must not be the queue itself and has none of its own.',
  },
  {
    form: /^partition is invalid/,
    code: 'PARTITION_NOT_FOUND',
    hint: 'Partitions are numbered from 0 to one less than their count.',
  },
  {
    form: /^invalid storage id; .* does not exist$/,
    code: 'ITEM_NOT_FOUND',
    hint: 'It may be completed, moved or retried: an item that goes back to its queue gets a new id.',
  },
  {
    form: /^invalid storage id/,
    code: 'ITEM_ID_INVALID',
    hint: 'Item ids are 27 letters and digits, as they were given out.',
  },
  {
    form: /is not marked as leased$/,
    code: 'ITEM_NOT_LEASED',
    hint: 'Stop work on this item: its lease has ended.',
  },
  {
    form: /^duplicate client id/,
    code: 'CLIENT_ID_BUSY',
    hint: 'Give every worker a client id of its own, or wait for its answer.',
  },
  {
    form: /^request timeout; no items/,
    code: 'LEASE_TIMEOUT',
    hint: 'There was nothing to do in time. Ask again.',
  },
  {
    form: /^request timeout; the queue is busy/,
    code: 'CALL_TIMEOUT',
    hint: 'Nothing was done. Repeat the request, or allow it more time.',
  },
  {
    form: /^queue is overloaded/,
    code: 'QUEUE_OVERLOADED',
    hint: 'Send fewer requests at once, or the same one again in a moment; batches cost less than single items.',
  },
  {
    form: /^internal error, try your request again/,
    code: 'STORE_UNAVAILABLE',
    hint: 'The server keeps trying to reach its store; repeat the request.',
  },
  {
    form: /^service is shutting down/,
    code: 'SHUTTING_DOWN',
    hint: 'Send the request to another server, or again in a moment.',
  },
  {
    form: /^queue is shutting down/,
    code: 'QUEUE_SHUTTING_DOWN',
    hint: 'The queue is being deleted or its server stops: look whether it is still there, then repeat.',
  },
  {
    form: /^request body exceeds/,
    code: 'BODY_TOO_LARGE',
    hint: 'Send fewer or smaller items per request.',
  },
]

const byStatus: Readonly<Record<number, Readonly<{ code: string; hint: string }>>> = {
  401: { code: 'UNAUTHORIZED', hint: 'Check the API key.' },
  403: { code: 'FORBIDDEN', hint: 'Ask whoever manages access for a role with this permission.' },
  454: { code: 'RETRY_REQUEST', hint: 'Repeat the request.' },
  455: {
    code: 'CONTENT_UNREADABLE',
    hint: 'Send a body that matches its Content-Type, and accept JSON or protobuf.',
  },
  500: { code: 'INTERNAL', hint: 'Look in the log for the request id, then report it.' },
  501: { code: 'NOT_FOUND', hint: 'The server does not know this call: check its address and version.' },
}

export function isQueueErrorBody(body: unknown): body is QueueErrorBody {
  return typeof body === 'object' && body !== null && 'code' in body && typeof body.code === 'number'
}

export function meaningOf(status: number, message: string): QueueErrorMeaning {
  const found = meanings.find(({ form }) => form.test(message)) ?? byStatus[status]
  const { code = 'BAD_REQUEST', hint = 'Correct the request as the message says and send it again.' } =
    found ?? {}
  return { code, hint, itemId: code.startsWith('ITEM_') ? (itemIdForm.exec(message)?.[1] ?? null) : null }
}
