/**
 * A JSON text is parsed if it has at most this number of values (numbers, texts, objects, arrays, at any
 * depth). Parsing, checking and releasing the values of a text takes time and memory for each of them: 64 MB
 * of `[],` are 21 million arrays, which would occupy the server for half a minute. The limit allows an import
 * of the largest page of `storage/items.list`: 65,536 items with all their fields.
 */
export const jsonValuesMax = 1_200_000

/** Whether a JSON text has more than `valuesMax` values. Its bytes are read once at most. */
export function hasTooManyValues(bytes: Uint8Array, valuesMax = jsonValuesMax): boolean {
  if (bytes.length < valuesMax) return false
  const counter = createValueCounter(valuesMax)
  counter.read(bytes, 0, bytes.length)
  return counter.values > valuesMax
}

/**
 * Counts the values of a JSON text without parsing it. Each value is the first in an object or array, or
 * follows a comma. Reading ends at `valuesMax`. The text is not checked: the parser refuses an invalid text.
 */
export function createValueCounter(valuesMax: number): {
  readonly values: number
  /** How many bytes were looked at. */
  readonly bytesRead: number
  read(bytes: Uint8Array, from: number, to: number): void
} {
  let values = 1
  let bytesRead = 0
  let isInText = false
  let isEscaped = false
  const readTextByte = (code: number): void => {
    if (isEscaped) isEscaped = false
    else if (code === backslash) isEscaped = true
    else if (code === quote) isInText = false
  }
  return {
    get values() {
      return values
    },
    get bytesRead() {
      return bytesRead
    },
    read: (bytes, from, to) => {
      let at = from
      for (; at < to && values <= valuesMax; at++) {
        const code = bytes[at] as number
        if (isInText) readTextByte(code)
        else if (code === quote) isInText = true
        else if (code === comma || code === bracket || code === brace) values++
      }
      bytesRead += at - from
    },
  }
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const bracket = 0x5b
const brace = 0x7b
