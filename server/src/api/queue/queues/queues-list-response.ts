/** Reads and writes the answer of queues.list in parts: it can have 65,536 queues. */
import { create, toBinary, toJson } from '@bufbuild/protobuf'
import type { Queue } from '../../../core/items/queue.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { QueuesQuery } from '../../../storage/contract/queues.ts'
import type { Part } from '../../http/wire/json-parts.ts'
import { QueueInfoSchema, QueuesListResponseSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import type { Writer } from '../protocol/codec.ts'
import { toQueueInfo } from './queue-definition.ts'

const queuesPerStep = 500
/** A list ends with the queue that reaches this size. The caller continues at its name. */
const listBytesMax = 4 * 2 ** 20
/** A queue in JSON, without its texts. */
const queueBytes = 300

/** Reads a list in steps, so that other requests are answered between them. */
export async function readQueues(
  engine: Pick<Engine, 'listQueues'>,
  { countMax, ...query }: QueuesQuery,
): Promise<readonly Queue[]> {
  const found: Queue[] = []
  let bytes = 0
  for (let from = query.from; found.length < countMax && bytes < listBytesMax; from = found.at(-1)?.name) {
    // The first queue of a further step is the last one of the step before it.
    const known = found.length === 0 ? 0 : 1
    const asked = Math.min(countMax - found.length, queuesPerStep) + known
    const step = await engine.listQueues({ ...query, countMax: asked, ...(from !== undefined && { from }) })
    for (const queue of step.slice(known)) {
      if (bytes >= listBytesMax) return found
      found.push(queue)
      bytes += queueBytes + queue.name.length + queue.reference.length + (queue.deadQueue?.length ?? 0)
    }
    if (step.length < asked) return found
  }
  return found
}

export const queuesListResponse: Writer<readonly Queue[]> & { desc: typeof QueuesListResponseSchema } = {
  desc: QueuesListResponseSchema,
  write: (queues, format) => {
    if (format === 'json') return queues.length === 0 ? '{}' : writeJson(queues)
    return queues.length <= queuesPerStep ? writeProtobuf(queues) : writeProtobufParts(queues)
  },
}

function* writeJson(queues: readonly Queue[]): Generator<Part> {
  yield '{"items":['
  for (const [index, queue] of queues.entries()) {
    const json = toJson(QueueInfoSchema, toQueueInfo(queue), { useProtoFieldName: true })
    yield `${index === 0 ? '' : ','}${JSON.stringify(json)}`
  }
  yield ']}'
}

/** Encoded messages that follow each other are one message with the items of all. */
function* writeProtobufParts(queues: readonly Queue[]): Generator<Part> {
  for (let from = 0; from < queues.length; from += queuesPerStep)
    yield writeProtobuf(queues.slice(from, from + queuesPerStep))
}

function writeProtobuf(queues: readonly Queue[]): Uint8Array {
  const message = create(QueuesListResponseSchema, { items: queues.map(toQueueInfo) })
  return toBinary(QueuesListResponseSchema, message, { writeUnknownFields: false })
}
