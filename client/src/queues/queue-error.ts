/** The body of every error answer of the Queue API. */
export type QueueErrorBody = Readonly<{ code: number; code_text?: string; message?: string }>

export type QueueErrorMeaning = Readonly<{ code: string; hint: string; itemId: string | null }>

const itemIdForm = /'([0-9A-Za-z]{27})'/

/**
 * The Queue API sends no error codes, but its messages are fixed. The first matching pattern gives the code
 * of the same error in docs/errors.md.
 */
const errorsByMessage: readonly Readonly<{ form: RegExp; code: string; hint: string }>[] = [
  {
    form: /^queue does not exist/,
    code: 'QUEUE_NOT_FOUND',
    hint: 'Check the name of the queue, or create the queue first.',
  },
  {
    form: /^invalid queue; .* already exists$/,
    code: 'QUEUE_EXISTS',
    hint: 'Choose another name, or update the existing queue.',
  },
  {
    form: /^dead.queue /,
    code: 'DEAD_QUEUE_INVALID',
    hint: 'Name another existing queue that has no dead queue itself. A queue with dead letters cannot have a dead queue.',
  },
  {
    form: /^partition is invalid/,
    code: 'PARTITION_NOT_FOUND',
    hint: 'Use a partition number from 0 to the number of partitions minus 1.',
  },
  {
    form: /^invalid storage id; .* does not exist$/,
    code: 'ITEM_NOT_FOUND',
    hint: 'Use the current id. The item may be completed, moved or retried; a retried item gets a new id.',
  },
  {
    form: /^invalid storage id/,
    code: 'ITEM_ID_INVALID',
    hint: 'Use the item id exactly as the server returned it: 27 letters and digits.',
  },
  {
    form: /is not marked as leased$/,
    code: 'ITEM_NOT_LEASED',
    hint: 'Stop working on this item: its lease has ended.',
  },
  {
    form: /^duplicate client id/,
    code: 'CLIENT_ID_BUSY',
    hint: 'Give every worker its own client id, or wait until the lease call of this client id returns.',
  },
  {
    form: /^request timeout; no items/,
    code: 'LEASE_TIMEOUT',
    hint: 'Lease again. No item became available in time.',
  },
  {
    form: /^request timeout; the queue is busy/,
    code: 'CALL_TIMEOUT',
    hint: 'Retry the request, or allow it more time. Nothing was changed.',
  },
  {
    form: /^queue is overloaded/,
    code: 'QUEUE_OVERLOADED',
    hint: 'Retry in a moment, send fewer requests at once, or send more items per request.',
  },
  {
    form: /^internal error, try your request again/,
    code: 'STORE_UNAVAILABLE',
    hint: 'Retry the request. The server reconnects to its store automatically.',
  },
  {
    form: /^service is shutting down/,
    code: 'SHUTTING_DOWN',
    hint: 'Send the request to another server, or retry it in a few seconds.',
  },
  {
    form: /^queue is shutting down/,
    code: 'QUEUE_SHUTTING_DOWN',
    hint: 'Check whether the queue still exists, then retry. The queue is being deleted, or its server is stopping.',
  },
  {
    form: /^request body exceeds/,
    code: 'BODY_TOO_LARGE',
    hint: 'Send fewer or smaller items per request.',
  },
]

const errorsByStatus: Readonly<Record<number, Readonly<{ code: string; hint: string }>>> = {
  401: { code: 'UNAUTHORIZED', hint: 'Check the API key.' },
  403: { code: 'FORBIDDEN', hint: 'Ask an administrator for a role with this permission.' },
  454: { code: 'RETRY_REQUEST', hint: 'Repeat the request.' },
  455: {
    code: 'CONTENT_UNREADABLE',
    hint: 'Send a body that matches its Content-Type, and accept JSON or protobuf.',
  },
  500: {
    code: 'INTERNAL',
    hint: 'Find the request id in the server log, then report the error with its log lines.',
  },
  501: { code: 'NOT_FOUND', hint: 'The server does not know this call: check its address and version.' },
}

export function isQueueErrorBody(body: unknown): body is QueueErrorBody {
  return typeof body === 'object' && body !== null && 'code' in body && typeof body.code === 'number'
}

export function identifyQueueError(status: number, message: string): QueueErrorMeaning {
  const found = errorsByMessage.find(({ form }) => form.test(message)) ?? errorsByStatus[status]
  const { code = 'BAD_REQUEST', hint = 'Correct the request as the message describes, then send it again.' } =
    found ?? {}
  return { code, hint, itemId: code.startsWith('ITEM_') ? (itemIdForm.exec(message)?.[1] ?? null) : null }
}
