import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { addAuditFunctions } from './audit-functions.ts'
import { createFolder } from './create-folder.ts'
import { toKnownError } from './errors.ts'

export type Row = Record<string, null | number | bigint | string | Uint8Array>
/** The columns of a row in the order of the select. */
export type Values = readonly Row[string][]
export type Bound = SQLInputValue

/**
 * A connection with its prepared statements. Expected errors of SQLite are thrown as KnownError.
 *
 * Statements with a bound limit write `limit +?`: SQLite plans `limit ?` again each time a value is bound,
 * which costs ten times as much as a small query.
 */
export class Database {
  readonly #connection: DatabaseSync
  readonly #path: string
  readonly #statements = new Map<string, StatementSync>()
  readonly #arrayStatements = new Map<string, StatementSync>()

  constructor(path: string, options: { isReadOnly?: boolean } = {}) {
    this.#path = path
    try {
      if (path !== ':memory:' && !options.isReadOnly) createFolder(dirname(path))
      this.#connection = new DatabaseSync(path, { readOnly: options.isReadOnly ?? false, timeout: 5_000 })
      if (!options.isReadOnly) addAuditFunctions(this.#connection)
    } catch (error) {
      throw toKnownError(error, path)
    }
  }

  get isInTransaction(): boolean {
    return this.#connection.isTransaction
  }

  exec(sql: string): void {
    this.#guard(() => this.#connection.exec(sql))
  }

  run(sql: string, ...values: Bound[]): number {
    return this.#guard(() => Number(this.#prepare(sql).run(...values).changes))
  }

  all(sql: string, ...values: Bound[]): Row[] {
    return this.#guard(() => this.#prepare(sql).all(...values))
  }

  get(sql: string, ...values: Bound[]): Row | undefined {
    return this.#guard(() => this.#prepare(sql).get(...values))
  }

  /**
   * Rows as arrays, for the hot paths: naming the columns of a row costs several times as much as reading
   * them.
   */
  readArrays(sql: string, ...values: Bound[]): Values[] {
    return this.#guard(() => this.#prepareArrays(sql).all(...values) as unknown as Values[])
  }

  /**
   * Reads rows up to the first for which `isEnough` is true, which is included. The rows after it are not
   * read.
   */
  readArraysUntil(isEnough: (row: Values) => boolean, sql: string, ...values: Bound[]): Values[] {
    return this.#guard(() => {
      const rows: Values[] = []
      for (const row of this.#prepareArrays(sql).iterate(
        ...values,
      ) as Iterable<unknown> as Iterable<Values>) {
        rows.push(row)
        if (isEnough(row)) break
      }
      return rows
    })
  }

  getArray(sql: string, ...values: Bound[]): Values | undefined {
    return this.#guard(() => this.#prepareArrays(sql).get(...values) as unknown as Values | undefined)
  }

  readPragma(name: string): number {
    const row = this.get(`pragma ${name}`)
    return Number(row === undefined ? 0 : Object.values(row)[0])
  }

  close(): void {
    this.#statements.clear()
    this.#arrayStatements.clear()
    if (this.#connection.isOpen) this.#connection.close()
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#connection.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #prepareArrays(sql: string): StatementSync {
    let statement = this.#arrayStatements.get(sql)
    if (statement === undefined) {
      statement = this.#connection.prepare(sql)
      statement.setReturnArrays(true)
      this.#arrayStatements.set(sql, statement)
    }
    return statement
  }

  #guard<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw toKnownError(error, this.#path)
    }
  }
}
