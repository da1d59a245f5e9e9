/**
 * A step of the schema of a store. The rules are the same for both stores:
 *
 * - Migrations only go forward. The number of a migration is its position in the store's list, from 1; its
 *   name starts with the number.
 * - Both stores have the same numbers and names. A number that changes only one of them is a no-op in the
 *   other, with the reason.
 * - A released migration is never edited. PostgreSQL records the name and the checksum of each applied
 *   migration and refuses a schema whose migrations differ; SQLite records the number only (`user_version`).
 */
export type Migration = Readonly<{ name: string } & ({ sql: string } | { noChange: string })>

/** The SQL of a migration; empty for a no-op. */
export function migrationSql(migration: Migration): string {
  return 'sql' in migration ? migration.sql : ''
}
