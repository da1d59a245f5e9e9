import type { Storage } from '../../../src/storage/contract/storage.ts'
import { noon } from '../../make.ts'
import { run } from './store-reads.ts'

const payloadBytes = 16 * 1024

/** Produces to queue `work` until a write fails, and returns the error; undefined if all were accepted. */
export async function produceUntilFull(
  storage: Storage,
  prefix: string,
  countMax: number,
  kept: string[],
): Promise<unknown> {
  for (let count = 0; count < countMax; count++) {
    const names = [`${prefix}-${count}-a`, `${prefix}-${count}-b`]
    // Random bytes, so that no file system can compress or share them.
    const items = names.map((reference) => ({
      payload: crypto.getRandomValues(new Uint8Array(payloadBytes)),
      reference,
    }))
    try {
      await run(storage, { op: 'produce', queue: 'work', partition: 0, items, now: noon })
      kept.push(...names)
    } catch (error) {
      return error
    }
  }
  return undefined
}
