import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { StoreKind } from '../arguments.ts'
import { storeNames } from '../bench-stores.ts'
import { UnmetRequirement } from '../unmet-requirement.ts'

/**
 * The size of a letter with its index entries, plus a fifth. `spareBytes` is for the WAL and the live items.
 */
const bytesPerLetter: Readonly<Record<StoreKind, number>> = { postgres: 2_400, sqlite: 2_000 }
const spareBytes = 3_000_000_000

/** Fails before the benchmark starts, not after minutes. */
export function checkDiskSpace(kind: StoreKind, letters: number): void {
  const { bavail, bsize } = statfsSync(tmpdir())
  const neededBytes = letters * bytesPerLetter[kind] + spareBytes
  if (bavail * bsize >= neededBytes) return
  const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(1)
  throw new UnmetRequirement(
    `${letters.toLocaleString('en-US')} letters in ${storeNames[kind]} need about ${gigabytes(neededBytes)} GB, and ` +
      `${tmpdir()} has ${gigabytes(bavail * bsize)} GB left: reduce --letters, or set TMPDIR to another folder`,
  )
}
