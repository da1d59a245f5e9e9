/** The two formats of a body. Request and answer can have different formats. */
export type Format = 'json' | 'protobuf'

export const contentTypes: Readonly<Record<Format, string>> = {
  json: 'application/json',
  protobuf: 'application/protobuf',
}

/**
 * Returns the format that a Content-Type or Accept header names, or undefined if it is not supported. Only
 * the first type counts; everything after `;` or `,` is ignored.
 */
export function parseFormat(header: string | undefined): Format | undefined {
  // Fast path for the most frequent values.
  if (header === undefined || header === 'application/json' || header === '*/*') return 'json'
  if (header === 'application/protobuf') return 'protobuf'
  const end = header.search(/[;,]/)
  switch ((end === -1 ? header : header.slice(0, end)).trim().toLowerCase()) {
    case 'application/protobuf':
      return 'protobuf'
    case 'application/json':
    case 'application/*':
    case '*/*':
    case '':
      return 'json'
    default:
      return undefined
  }
}
