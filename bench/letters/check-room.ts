import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { StoreKind } from '../arguments.ts'
import { CannotRun } from '../cannot-run.ts'
import { storeNames } from '../places.ts'

/** A letter with its share of the indexes, and a fifth more. The rest is the database's log and the live items. */
const bytesPerLetter: Readonly<Record<StoreKind, number>> = { postgres: 2_400, sqlite: 2_000 }
const spareBytes = 3_000_000_000

/** Said at once, not after minutes. */
export function checkRoom(kind: StoreKind, letters: number): void {
  const { bavail, bsize } = statfsSync(tmpdir())
  const neededBytes = letters * bytesPerLetter[kind] + spareBytes
  if (bavail * bsize >= neededBytes) return
  const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(1)
  throw new CannotRun(
    `${letters.toLocaleString('en-US')} letters in ${storeNames[kind]} need about ${gigabytes(neededBytes)} GB, and ` +
      `${tmpdir()} has ${gigabytes(bavail * bsize)} GB left: ask for fewer with --letters, or name another folder with TMPDIR`,
  )
}
