/**
 * Reads a column of a database row with its type. The decoder of each table uses these functions, so that no
 * other code asserts the type of a column. `column` is a name, or a position in a row that is read as an
 * array.
 */
type Columns<C extends string | number> = Readonly<{ [name in C]?: unknown }> | readonly unknown[]

function valueAt<C extends string | number>(row: Columns<C>, column: C): unknown {
  return (row as Readonly<{ [name in C]?: unknown }>)[column]
}

export function readNumber<C extends string | number>(row: Columns<C>, column: C): number {
  const value = valueAt(row, column)
  if (typeof value === 'number') return value
  throw mismatch(column, 'a number', value)
}

export function readNumberOrNull<C extends string | number>(row: Columns<C>, column: C): number | null {
  return valueAt(row, column) === null ? null : readNumber(row, column)
}

export function readText<C extends string | number>(row: Columns<C>, column: C): string {
  const value = valueAt(row, column)
  if (typeof value === 'string') return value
  throw mismatch(column, 'a text', value)
}

export function readTextOrNull<C extends string | number>(row: Columns<C>, column: C): string | null {
  return valueAt(row, column) === null ? null : readText(row, column)
}

/** A JSON document of our own, in a text column. Its type is the decoder's knowledge of the writer. */
export function readJson<T, C extends string | number = string>(row: Columns<C>, column: C): T {
  return JSON.parse(readText(row, column)) as T
}

function mismatch(column: string | number, expected: string, value: unknown): Error {
  return new Error(
    `column ${column} is ${value === null ? 'null' : `a ${typeof value}`}; expected ${expected}`,
  )
}
