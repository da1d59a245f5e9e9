/**
 * Reads a column of a database row with its type. The decoder of each table uses these functions, so that no
 * other code asserts the type of a column. `column` is a name, or a position in a row that is read as an
 * array.
 */
export type DatabaseRow = Readonly<Record<string, unknown>> | readonly unknown[]

export function readNumber(row: DatabaseRow, column: string | number): number {
  const value = readColumn(row, column)
  if (typeof value === 'number') return value
  throw createMismatchError(column, 'a number', value)
}

export function readNumberOrNull(row: DatabaseRow, column: string | number): number | null {
  return readColumn(row, column) === null ? null : readNumber(row, column)
}

export function readText(row: DatabaseRow, column: string | number): string {
  const value = readColumn(row, column)
  if (typeof value === 'string') return value
  throw createMismatchError(column, 'a text', value)
}

export function readTextOrNull(row: DatabaseRow, column: string | number): string | null {
  return readColumn(row, column) === null ? null : readText(row, column)
}

export function readBoolean(row: DatabaseRow, column: string | number): boolean {
  const value = readColumn(row, column)
  if (typeof value === 'boolean') return value
  throw createMismatchError(column, 'a boolean', value)
}

export function readBytes(row: DatabaseRow, column: string | number): Uint8Array {
  const value = readColumn(row, column)
  if (value instanceof Uint8Array) return value
  throw createMismatchError(column, 'bytes', value)
}

export function readBytesOrNull(row: DatabaseRow, column: string | number): Uint8Array | null {
  return readColumn(row, column) === null ? null : readBytes(row, column)
}

/** A JSON document that Redrive wrote to a text column; the caller knows its type. */
export function readJson<T>(row: DatabaseRow, column: string | number): T {
  return JSON.parse(readText(row, column)) as T
}

function readColumn(row: DatabaseRow, column: string | number): unknown {
  return (row as Readonly<Record<string | number, unknown>>)[column]
}

function createMismatchError(column: string | number, expected: string, value: unknown): Error {
  return new Error(
    `column ${column} is ${value === null ? 'null' : `a ${typeof value}`}; expected ${expected}`,
  )
}
