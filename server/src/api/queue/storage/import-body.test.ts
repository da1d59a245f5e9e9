import { describe, expect, it } from 'vitest'
import { importBody, importItemsMax, importMessageReader } from './import-body.ts'
import { itemsPerPart } from './storage-items-response.ts'

const facts = { now: 0 }
const toBody = (value: unknown) => Buffer.from(JSON.stringify(value))
const toItem = (text: string) => ({ payload: Buffer.from(text).toString('base64'), kind: `kind ${text}` })

describe('the body of an import', () => {
  it('a body that is converted in parts has the same message as one that is read at once', async () => {
    const items = Array.from({ length: 2 * itemsPerPart + 7 }, (_, index) => toItem(String(index)))
    const body = { queue_name: 'jobs', partition: 3, items }
    const converted = Buffer.from(importMessageReader.read(toBody(body), facts))
    const message = await importBody.read(converted, 'protobuf')
    expect(message).toEqual(await importBody.read(toBody(body), 'json'))
    expect(message).toMatchObject({ queueName: 'jobs', partition: 3 })
    expect(message.items.map(({ payload }) => Buffer.from(payload).toString())).toEqual(
      items.map((_, index) => String(index)),
    )
  })

  it.each([
    ['no items', { queue_name: 'jobs' }],
    ['an empty list', { queue_name: 'jobs', items: [] }],
  ])('a body with %s is converted', async (_, body) => {
    const converted = Buffer.from(importMessageReader.read(toBody(body), facts))
    expect(await importBody.read(converted, 'protobuf')).toMatchObject({ queueName: 'jobs', items: [] })
  })

  it('an error names the item by its position in the body', () => {
    const items = Array.from({ length: itemsPerPart + 9 }, (_, index) => toItem(String(index)))
    const last = items.at(-1)
    if (last !== undefined) last.payload = 'not base64!'
    expect(() => importMessageReader.read(toBody({ queue_name: 'jobs', items }), facts)).toThrow(
      `items[${itemsPerPart + 8}].payload is not base64`,
    )
  })

  it.each([
    [{ queue_name: 'jobs', items: [{ unknown: 1 }] }, 'unknown'],
    [{ queue: 'jobs', items: [] }, 'queue'],
    [{ queue_name: 'jobs', items: 5 }, 'items'],
    [[], 'match the message'],
    [{ queue_name: 'jobs', items: Array(importItemsMax + 1).fill({}) }, 'cannot be more than 100000'],
  ])('an invalid body is refused %#', (body, message) => {
    expect(() => importMessageReader.read(toBody(body), facts)).toThrow(message)
  })
})
