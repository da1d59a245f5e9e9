/** The parsers of column values, by the OID of their type. */
const parsers = new Map<number, (text: string) => unknown>([
  [16, (text) => text === 't'],
  [17, parseBytes],
  [20, Number],
  [21, Number],
  [23, Number],
])

/**
 * Our own table, because the whole process shares `pg.types`. All 64-bit numbers fit, see
 * core/time/instant.ts.
 */
export function getParser(oid: number): (text: string) => unknown {
  return parsers.get(oid) ?? String
}

/** Bytes in the hexadecimal format of PostgreSQL. */
export function parseBytes(text: string): Uint8Array {
  const bytes = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
