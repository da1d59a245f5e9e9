import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { collectBody } from '../bodies/collect-body.ts'
import {
  type AnswerKind,
  aloneBodyBytes,
  bodiesReadMax,
  type Capacities,
  type Capacity,
  createOverloadedError,
  largeBodyBytes,
  type Release,
} from './capacity.ts'

/** The answers to requests whose bodies may be large. */
const answersToBodies = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Takes capacity for a large body until its answer is sent. The length of a chunked body is not known, so its
 * bytes are counted as they arrive. `done` gets the stream to read instead of `payload`.
 */
export function limitBody(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: Readable,
  { capacity, bytesMax }: Readonly<{ capacity: Capacity; bytesMax: number }>,
  done: (error: Error | null, payload?: Readable) => void,
): void {
  const { headers } = request.raw
  const length = Number(headers['content-length'] ?? 0)
  // Fastify refuses a body that is larger than the limit.
  if (length >= largeBodyBytes && length <= bytesMax) {
    answersToBodies.set(request.raw, reply.raw)
    const release = capacity.tryTake(length)
    if (release !== undefined) reply.raw.once('close', release)
    if (release === undefined) done(createOverloadedError('large bodies'))
    else done(null, collectBody(request.raw, payload, length))
    return
  }
  if (headers['transfer-encoding'] !== undefined) {
    answersToBodies.set(request.raw, reply.raw)
    limitChunks(reply, payload, capacity)
  }
  done(null, payload)
}

/**
 * Waits until a large body that has arrived may be read, and takes capacity for its values until the request
 * is answered.
 */
export async function limitBodyRead(
  request: IncomingMessage,
  length: number,
  capacity: Capacity,
): Promise<void> {
  const release = await capacity.take(length < aloneBodyBytes ? 1 : bodiesReadMax)
  if (release === undefined) throw createOverloadedError('large bodies')
  const answer = answersToBodies.get(request)
  if (answer === undefined || answer.destroyed || answer.closed) release()
  else answer.once('close', release)
}

function limitChunks(reply: FastifyReply, payload: Readable, capacity: Capacity): void {
  const taken: Release[] = []
  let bytes = 0
  const onData = (chunk: Uint8Array): void => {
    bytes += chunk.length
    if (bytes < largeBodyBytes * (taken.length + 1)) return
    const release = capacity.tryTake(largeBodyBytes)
    if (release !== undefined) taken.push(release)
    else {
      payload.off('data', onData)
      payload.emit('error', createOverloadedError('large bodies'))
    }
  }
  payload.on('data', onData)
  reply.raw.once('close', () => {
    for (const release of taken) release()
  })
}

/** An answer that the client does not read is cut off after this time, because it holds memory. */
const unreadMsMax = 60_000

const subjects: Readonly<Record<AnswerKind, string>> = {
  large: 'large answers',
  export: 'exports',
  events: 'event streams',
}

/** Takes capacity for an answer until it is sent. Only large answers are waited for: they are short. */
export async function limitAnswer(
  kind: AnswerKind,
  reply: FastifyReply,
  { answers }: Capacities,
): Promise<void> {
  const capacity = answers[kind]
  const release = kind === 'large' ? await capacity.take() : capacity.tryTake()
  if (release === undefined) throw createOverloadedError(subjects[kind])
  const { raw } = reply
  if (raw.destroyed || raw.closed) release()
  else raw.once('close', release)
  if (kind === 'large') raw.setTimeout(unreadMsMax, () => raw.destroy())
}
