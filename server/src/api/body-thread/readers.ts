/** All readers that the body thread can run, by name. A test compares them with the route table. */
import type { BodyReader } from '../http/bodies/body-reader.ts'
import { produceMessageReader } from '../queue/items/produce-body.ts'
import { importMessageReader } from '../queue/storage/import-body.ts'
import { captureBodyReader } from '../v1/letters/capture-body.ts'
import { redriveBodyReader } from '../v1/letters/redrive-body.ts'
import { queueItemsBodyReader } from '../v1/queues/queue-items-body.ts'

const readers: readonly BodyReader[] = [
  produceMessageReader,
  importMessageReader,
  captureBodyReader,
  redriveBodyReader,
  queueItemsBodyReader,
]
export const bodyReaders: ReadonlyMap<string, BodyReader> = new Map(
  readers.map((reader) => [reader.name, reader]),
)
