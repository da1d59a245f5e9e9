import { createHash } from 'node:crypto'
import { KnownError } from '../../errors.ts'

/**
 * A step of the schema of a store. The rules are the same for both stores:
 *
 * - Migrations only go forward. The number of a migration is its position in the store's list, from 1; its
 *   name starts with the number.
 * - Both stores have the same numbers and names. A number that changes only one of them is a no-op in the
 *   other, with the reason.
 * - A released migration is never edited. Each store records the name and the checksum of every migration
 *   that it ran, and a store whose record differs from this program's migrations is refused.
 */
export type Migration = Readonly<{ name: string } & ({ sql: string } | { noChange: string })>

/** A migration as a store has recorded it. */
export type AppliedMigration = Readonly<{ number: number; name: string; checksum: string }>

/** The SQL of a migration; empty for a no-op. */
export function getMigrationSql(migration: Migration): string {
  return 'sql' in migration ? migration.sql : ''
}

export function computeChecksum(migration: Migration): string {
  return createHash('sha256').update(getMigrationSql(migration)).digest('hex')
}

/** Refuses a store that has a migration which this program does not have, or has in another form. */
export function checkApplied(
  applied: readonly AppliedMigration[],
  wanted: readonly Migration[],
  address: string,
): void {
  checkVersion(applied.length, wanted, address)
  for (const [index, { number, name, checksum }] of applied.entries()) {
    const migration = wanted[index] as Migration
    if (number === index + 1 && name === migration.name && checksum === computeChecksum(migration)) continue
    const [theirs, ours] = [`number ${number}, ${name}`, `number ${index + 1}, ${migration.name}`]
    throw createSchemaDiffersError(
      address,
      `it has run migration ${theirs}, checksum ${shorten(checksum)}; ` +
        `this program has ${ours}, checksum ${shorten(computeChecksum(migration))}`,
    )
  }
}

export function checkVersion(version: number, wanted: readonly Migration[], address: string): void {
  if (version <= wanted.length) return
  throw new KnownError(
    'SCHEMA_NEWER',
    `${address} has schema version ${version}, this program knows versions up to ${wanted.length}`,
  )
}

/** Refuses a schema that must be migrated before it can be read. */
export function checkCurrent(version: number, wanted: readonly Migration[], address: string): void {
  if (version === wanted.length) return
  throw new KnownError(
    'SCHEMA_OLDER',
    `${address} has schema version ${version}, this program reads version ${wanted.length}`,
  )
}

export function createSchemaDiffersError(address: string, reason: string): KnownError {
  return new KnownError('SCHEMA_DIFFERS', `${address} was created by a different build of Redrive: ${reason}`)
}

/** Long enough to tell two checksums apart in a message. */
function shorten(checksum: string): string {
  return checksum.slice(0, 12)
}
