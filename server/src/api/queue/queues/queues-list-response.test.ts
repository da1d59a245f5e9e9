import { fromBinary, fromJsonString } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { aQueue } from '../../../../test/make.ts'
import type { QueuesQuery } from '../../../storage/contract/queues.ts'
import type { Part } from '../../http/wire/json-parts.ts'
import { QueuesListResponseSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { queuesListResponse, readQueues } from './queues-list-response.ts'

const queues = Array.from({ length: 4_321 }, (_, index) =>
  aQueue({ name: `queue-${String(index).padStart(5, '0')}`, reference: 'r'.repeat(1_500) }),
)
const names = queues.map(({ name }) => name)

/** An engine with these queues that keeps the sizes of the steps. */
function createEngine(steps: number[] = []) {
  return {
    listQueues: async ({ from = '', countMax }: QueuesQuery) => {
      steps.push(countMax)
      return queues.filter(({ name }) => name >= from).slice(0, countMax)
    },
  }
}

function join(written: string | Uint8Array | Iterable<Part>): Buffer {
  const parts = typeof written === 'string' || written instanceof Uint8Array ? [written] : [...written]
  return Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)))
}

it('a list of queues is read in small steps and has each queue once, up to the limit', async () => {
  const steps: number[] = []
  const found = await readQueues(createEngine(steps), { countMax: 1_234 })
  expect(found.map(({ name }) => name)).toEqual(names.slice(0, 1_234))
  expect(Math.max(...steps)).toBeLessThanOrEqual(501)
})

it('a list of queues ends with the queue that reaches 4 MiB, and continues at its name', async () => {
  const listed: string[] = []
  for (let pivot: string | undefined; ; pivot = listed.at(-1)) {
    const page = await readQueues(createEngine(), { countMax: 65_536, ...(pivot && { from: pivot }) })
    expect(Buffer.byteLength(JSON.stringify(page.map(({ reference }) => reference)))).toBeLessThan(
      4.2 * 2 ** 20,
    )
    const more = page.map(({ name }) => name).filter((name) => name !== pivot)
    listed.push(...more)
    if (more.length === 0) break
  }
  expect(listed).toEqual(names)
})

it('a list of queues that is written in parts is the same message in JSON and in protobuf', () => {
  const json = fromJsonString(
    QueuesListResponseSchema,
    join(queuesListResponse.write(queues, 'json')).toString(),
  )
  const protobuf = fromBinary(QueuesListResponseSchema, join(queuesListResponse.write(queues, 'protobuf')))
  expect(json.items.map(({ queueName }) => queueName)).toEqual(names)
  expect(protobuf).toEqual(json)
  expect(join(queuesListResponse.write([], 'json')).toString()).toBe('{}')
})
