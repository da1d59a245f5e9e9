import { stepBytesMax } from '../../../storage/shared/byte-budget.ts'
import type { FetchedRecords } from './decode-fetch.ts'

/** The most records of one transaction. A longer one would delay other writers. */
const recordsMax = 1_000

/**
 * Divides fetched records into transactions. Records of one partition stay in order; a transaction may have
 * records of many partitions. The last part of a partition ends behind its last offset, which may belong to
 * no record.
 */
export function* sliceFetched(fetched: readonly FetchedRecords[]): Generator<readonly FetchedRecords[]> {
  let slices: FetchedRecords[] = []
  let count = 0
  let bytes = 0
  for (const { claimed, records, until } of fetched) {
    let start = 0
    for (let at = 0; at < records.length; at++) {
      const size = measure(records[at])
      if (count > 0 && (count === recordsMax || bytes + size > stepBytesMax)) {
        const own = records.slice(start, at)
        if (own.length > 0) slices.push({ claimed, records: own, until: (own.at(-1)?.offset ?? 0) + 1 })
        yield slices
        ;[slices, count, bytes, start] = [[], 0, 0, at]
      }
      count++
      bytes += size
    }
    slices.push({ claimed, records: records.slice(start), until })
  }
  if (slices.length > 0) yield slices
}

function measure(record: FetchedRecords['records'][number] | undefined): number {
  return (record?.value?.byteLength ?? 0) + (record?.key?.byteLength ?? 0)
}
