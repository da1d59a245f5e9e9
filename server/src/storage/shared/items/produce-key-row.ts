import { type DatabaseRow, readJson, readNumber, readText } from '../rows/row-values.ts'

/** The first command with an idempotency key. `digest`: of its items, see items-digest.ts. */
export type ProduceKey = Readonly<{ partition: number; ids: readonly string[]; digest: string }>

/** From a row of the table `produce_keys`, which has the same columns in both stores. */
export function toProduceKey(row: DatabaseRow): ProduceKey {
  return {
    partition: readNumber(row, 'partition'),
    ids: readJson<string[]>(row, 'ids'),
    digest: readText(row, 'digest'),
  }
}
