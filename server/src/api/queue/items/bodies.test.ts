/** The hand-written codecs of queue.produce and queue.lease agree with the descriptors. */
import { create, fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import fc from '../../../../test/fast-check.ts'
import { aLeasedItem } from '../../../../test/make.ts'
import {
  QueueLeaseResponseSchema,
  QueueProduceRequestSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { createCodec } from '../protocol/codec.ts'
import type { Format } from '../protocol/format.ts'
import { toInstant, toTimestamp } from '../protocol/times.ts'
import { type LeaseResponse, leaseResponse } from './lease-response.ts'
import { produceBody, produceMessageReader } from './produce-body.ts'

const text = fc.oneof(fc.constant(''), fc.string({ unit: 'grapheme', maxLength: 40 }))
const bytes = fc.oneof(fc.constant(new Uint8Array()), fc.uint8Array({ maxLength: 300 }))
const instant = fc.integer({ min: 0, max: 4e15 })

const produced = fc.record({
  queueName: text,
  requestTimeout: text,
  items: fc.array(
    fc
      .record({
        encoding: text,
        kind: text,
        reference: text,
        bytes,
        utf8: text,
        enqueueAt: fc.option(instant.map(toTimestamp), { nil: undefined }),
      })
      .filter((item) => item.bytes.length === 0 || item.utf8 === ''),
    { maxLength: 4 },
  ),
})

describe('the body of queue.produce', () => {
  it('a produce body is read like its descriptor reads it', () => {
    fc.assert(
      fc.property(produced, (given) => {
        const message = create(QueueProduceRequestSchema, given as never)
        const expected = {
          queueName: given.queueName,
          requestTimeout: given.requestTimeout,
          itemCount: given.items.length,
          items: given.items.map((item) => ({
            payload: Buffer.from(item.bytes.length > 0 ? item.bytes : item.utf8).toString('hex'),
            kind: item.kind,
            encoding: item.encoding,
            reference: item.reference,
            availableAt: toInstant(item.enqueueAt),
          })),
        }
        const { write } = createCodec(QueueProduceRequestSchema)
        for (const format of ['json', 'protobuf'] as const) {
          const read = produceBody.read(Buffer.from(write(message, format)), format)
          const items = read.items.map((item) => ({
            ...item,
            payload: Buffer.from(item.payload).toString('hex'),
          }))
          expect({ ...read, items }).toEqual(expected)
        }
      }),
    )
  })

  it('a produce body accepts and refuses the same JSON values as its descriptor', () => {
    const value = fc.oneof(
      fc.constantFrom(
        'aGk',
        'aGk=',
        'aGk==',
        'a-_',
        'a',
        '====',
        'YQ==',
        'YR',
        'a b',
        '!',
        '\ud800',
        null,
        7,
      ),
      fc.string(),
    )
    const item = fc.dictionary(
      fc.constantFrom('bytes', 'utf8', 'kind', 'enqueue_at', 'enqueueAt', 'x'),
      value,
    )
    const body = fc.record(
      { queue_name: value, queueName: value, items: fc.oneof(fc.array(item, { maxLength: 2 }), value) },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(body, (json) => {
        const outcome = (work: () => unknown): string => {
          try {
            return JSON.stringify(work())
          } catch {
            return 'refused'
          }
        }
        const byHand = outcome(() =>
          produceBody.read(Buffer.from(JSON.stringify(json)), 'json').items.map((each) => [...each.payload]),
        )
        const byDescriptor = outcome(() =>
          fromJson(QueueProduceRequestSchema, JSON.parse(JSON.stringify(json))).items.map((each, index) =>
            selectPayload(each, (json.items as Record<string, unknown>[])[index]?.bytes),
          ),
        )
        expect(byHand).toBe(byDescriptor)
      }),
      { numRuns: 1_000 },
    )
  })

  it('the body thread converts a JSON body to a protobuf body with the same items', () => {
    fc.assert(
      fc.property(produced, (given) => {
        const message = create(QueueProduceRequestSchema, given as never)
        const json = Buffer.from(createCodec(QueueProduceRequestSchema).write(message, 'json'))
        const converted = Buffer.from(produceMessageReader.read(json, { now: 0 }))
        const read = (bytes: Buffer, format: Format) => {
          const { items, ...rest } = produceBody.read(bytes, format)
          return { ...rest, items: items.map((item) => ({ ...item, payload: [...item.payload] })) }
        }
        expect(read(converted, 'protobuf')).toEqual(read(json, 'json'))
      }),
    )
  })

  it('the body thread counts the items of a JSON body that are too many to be kept', () => {
    const json = Buffer.from(JSON.stringify({ queue_name: 'orders', items: Array(70_000).fill({}) }))
    const converted = Buffer.from(produceMessageReader.read(json, { now: 0 }))
    expect(produceBody.read(converted, 'protobuf')).toMatchObject({ queueName: 'orders', itemCount: 70_000 })
  })

  it('payloads of a produce body are views of the body, not copies', () => {
    const message = create(QueueProduceRequestSchema, { items: [{ bytes: new Uint8Array(100) }] })
    const body = Buffer.from(toBinary(QueueProduceRequestSchema, message))
    expect(produceBody.read(body, 'protobuf').items[0]?.payload.buffer).toBe(body.buffer)
  })

  it('a produce body with very many items is counted completely but kept only in part', () => {
    const body = Buffer.alloc(400_000)
    for (let at = 0; at < body.length; at += 2) body[at] = 0x1a
    const { items, itemCount } = produceBody.read(body, 'protobuf')
    expect(itemCount).toBe(200_000)
    expect(items.length).toBeLessThan(itemCount)
  })
})

function selectPayload({ bytes, utf8 }: { bytes: Uint8Array; utf8: string }, given: unknown): number[] {
  if (typeof given === 'string' && !isBase64(given)) throw new Error('not base64')
  if (bytes.length > 0 && utf8 !== '') throw new Error('both are given')
  return [...(bytes.length > 0 ? bytes : Buffer.from(utf8))]
}

function isBase64(text: string): boolean {
  const digits = text.replace(/={1,2}$/, '')
  const isPadded = digits.length < text.length
  return /^[\w+/-]*$/.test(digits) && digits.length % 4 !== 1 && (!isPadded || text.length % 4 === 0)
}

function writeWhole(body: LeaseResponse, format: Format): Buffer {
  const written = leaseResponse.write(body, format)
  if (typeof written === 'string' || written instanceof Uint8Array) return Buffer.from(written)
  return Buffer.concat([...written].map((part) => Buffer.from(part)))
}

describe('the answer of queue.lease', () => {
  const leased = fc.record({
    queueName: text,
    partition: fc.nat(300),
    items: fc.array(
      fc
        .record({
          encoding: text,
          kind: text,
          reference: text,
          payload: bytes,
          attempts: fc.nat(2_147_483_647),
          deadline: fc.constantFrom(1_790_000_000_000_000, 1_790_000_000_000_001),
        })
        .map(({ deadline, ...item }) => aLeasedItem({ ...item, lease: { holder: 'w', deadline } })),
      { maxLength: 4 },
    ),
  })

  it('a lease answer is written like its descriptor writes it', () => {
    fc.assert(
      fc.property(leased, (body) => {
        const expected = create(QueueLeaseResponseSchema, {
          queueName: body.queueName,
          partition: body.partition,
          items: body.items.map((item) => ({
            encoding: item.encoding,
            kind: item.kind,
            reference: item.reference,
            id: item.id,
            attempts: item.attempts,
            leaseDeadline: toTimestamp(item.lease.deadline),
            bytes: item.payload,
          })),
        })
        const desc = QueueLeaseResponseSchema
        expect(JSON.parse(writeWhole(body, 'json').toString())).toEqual({
          queue_name: body.queueName,
          ...(toJson(desc, expected, { useProtoFieldName: true }) as object),
        })
        const written = writeWhole(body, 'protobuf')
        expect(written).toEqual(Buffer.from(toBinary(desc, expected)))
        expect(toJson(desc, fromBinary(desc, written))).toEqual(toJson(desc, expected))
      }),
    )
  })

  it('a lease answer with a large payload is written in parts of limited size, with the same content', () => {
    const items = [1_000, 1_000_003, 0, 300_000].map((length, index) =>
      aLeasedItem({ id: `item${index}`, payload: new Uint8Array(length).map((_, at) => at * 7) }),
    )
    const body = { queueName: 'orders', partition: 3, items }
    const parts = [...(leaseResponse.write(body, 'json') as Iterable<string>)]
    expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(200_000)
    const expected = fromBinary(QueueLeaseResponseSchema, writeWhole(body, 'protobuf'))
    expect(JSON.parse(parts.join(''))).toEqual(
      toJson(QueueLeaseResponseSchema, expected, { useProtoFieldName: true }),
    )
  })
})
