/** Recognises words that are data: ids, numbers, times, hosts, paths. */
import { hostEnding, units, wordsWithDigits } from './words.ts'

const uuid = /^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/
const idMin = 12

/** How a word with a digit is shown: as it is, with its number replaced, or as an id. */
export function showNumbered(word: string): string {
  if (!/[0-9]/.test(word) || wordsWithDigits.has(word.toLowerCase()) || isErrorName(word)) return word
  // A name with its version, which is sometimes left out: nginx/1.25.3, HTTP/1.1.
  const product = /^([A-Za-z][A-Za-z-]*)\/[vV]?[0-9][\w.-]*$/.exec(word)?.[1]
  if (product !== undefined) return product
  if (isHost(word) || ipv6.test(word)) return '<host>'
  if (plainNumber.test(word)) return '<n>'
  return showMeasured(word) ?? (uuid.test(word) || hexadecimal.test(word) ? '<id>' : showMixed(word))
}

const ipv6 = /^[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}$/
const plainNumber = /^[+-]?[0-9]+(?:[.,:'][0-9]+)*$/
const hexadecimal = /^[#@]?0[xX][0-9a-fA-F]+$/

/** A number with its unit: 30s, 1.5GB, 12%. */
function showMeasured(word: string): string | undefined {
  const unit = /^[+~≈<>]?[+-]?[0-9][0-9.,]*([\p{L}µ%]+)$/u.exec(word)?.[1]
  if (unit === undefined || !units.has(unit.toLowerCase())) return undefined
  if (unit === '%') return '<n>'
  return /b$/i.test(unit) ? '<size>' : '<duration>'
}

/** A word of letters and digits. */
function showMixed(word: string): string {
  if (/^v?[0-9]+(?:\.[0-9]+)+[\w.+-]*$/.test(word)) return '<n>'
  // A qualified name: psycopg2.errors.NotNullViolation.
  const digits = word.length - word.replaceAll(/[0-9]/g, '').length
  if (digits <= 2 && /^[A-Za-z_$][\w$]*(?:(?:\.|::|\\)[A-Za-z_$][\w$]*)+$/.test(word)) return word
  // Digits inside a name of the program: flush2DB, jk2_init, i18n, NotFound404Handler.
  const inside = /^\p{L}[\p{L}_]*[0-9]{1,2}_?\p{L}[\p{L}_]*$/u
  if (
    word.length < 40 &&
    inside.test(word) &&
    !/^[0-9a-f]+$/i.test(word) &&
    /_|[a-z]{3}/.test(word) &&
    !isRandomWord(word)
  )
    return word
  if (/^[0-9a-f]{8,}$/.test(word)) return '<id>'
  // A name with a number: worker-3, user42, core.2275. Short or upper-case names are part of an id: B38,
  // INV-00017.
  const counted = /^([#@]?\p{L}[\p{L}_.$]*(?:-\p{L}[\p{L}_]*)?[-_.#:@]?)([0-9]{1,9})$/u.exec(word)
  if (counted !== null) {
    const name = counted[1] as string
    const letters = name.replaceAll(/[^\p{L}]/gu, '')
    if (letters.length >= 3 && /\p{Ll}/u.test(letters)) return `${name}<n>`
  }
  return '<id>'
}

/** Letters in random case, such as a key in base 64. */
export function isRandomWord(word: string): boolean {
  if (word.length < 12) return false
  if (
    word.length >= 24 &&
    /^[A-Za-z0-9+/_-]+=*$/.test(word) &&
    /[+/=]/.test(word) &&
    /[A-Z]/.test(word) &&
    /[a-z]/.test(word)
  )
    return true
  if (!/^[A-Za-z0-9]+$/.test(word)) return false
  const runs = word.match(/[A-Z]+|[a-z]+|[0-9]+/g)?.length ?? 0
  if (word.length < 16) return word.length / runs < 1.9 || hasShortParts(word, 2.5)
  if (runs >= 4 && (isUnpronounceable(word) || hasShortParts(word, 3))) return true
  if (word.length >= singleCaseMin && /^[A-Z]+$/.test(word)) return true
  return word.length / runs < 2.2 || (word.length >= idMin * 2 && /^[0-9a-f]+$/.test(word))
}

const singleCaseMin = 20

/** The parts of a name in camel case are words: convertUtf8ToLatin. */
function hasShortParts(word: string, lengthMin: number): boolean {
  const parts = word.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+/g)?.length ?? 1
  return parts >= 4 && word.length / parts < lengthMin
}

/** Words of a language have more vowels. */
function isUnpronounceable(word: string): boolean {
  const letters = word.replaceAll(/[0-9]/g, '')
  return letters.replaceAll(/[aeiouy]/gi, '').length > letters.length * 0.82
}

export function isHost(word: string): boolean {
  // A single label with a port: msra-sa-41:8030, localhost:80. Otherwise it is a key with its value:
  // total:80.
  if (!word.includes('.')) return /^(?:localhost|[a-z][\w]*(?:-\w+)*-[\w]*[0-9]):[0-9]{2,5}$/i.test(word)
  if (/^[0-9]+(?:\.[0-9]+){3}(?::[0-9]+)?$/.test(word)) return true
  if (!/^[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*(?::[0-9]{1,5})?$/u.test(word)) return false
  if (/:[0-9]+$/.test(word)) return /[a-z]/i.test(word)
  // Names of classes and packages have capitals or underscores in their last part.
  return (
    hostEnding.test(word) &&
    !/_|[a-z][A-Z]/.test(word) &&
    !/^(?:com|org|net|io|java|javax|de|dev|app|me|co)\./.test(word)
  )
}

/** An absolute or relative path of a file system, or the path of a request. */
export function isPath(word: string): boolean {
  if (/^(?:\/|\.{1,2}\/|~\/|[A-Za-z]:[\\/]|\\\\)\S/.test(word)) return true
  const parts = word.split(/[\\/]/)
  if (parts.length < 3)
    return (
      parts.length === 2 && /[\\/][^\\/]*\.[A-Za-z0-9]{1,5}$/.test(word) && !/^[A-Za-z]+\/[0-9.]+$/.test(word)
    )
  return parts.length >= 3 && !/^[A-Z][\w]*(?:\\[A-Z{][\w}]*)+$/.test(word)
}

const time =
  /(?:[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}|[0-9]{1,2}\.[0-9]{1,2}\.(?:[0-9]{4})?|[0-9]{1,2}\/[0-9]{1,2}\/[0-9]{4})(?:[T :,]{1,2}[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?(?:Z|UTC|GMT|[AP]M|[+-][0-9]{2}:?[0-9]{2}))?(?:\[[\w/]+\])?)?(?![0-9\p{L}])|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?(?:AM|PM|UTC))?(?![0-9:\p{L}])/uy

/** The end of the date or time that starts with the word; -1 if there is none. */
export function readTime(text: string, start: number, word: string): number {
  if (!/^[0-9]{1,4}[-/:.]/.test(word)) return -1
  time.lastIndex = start
  const found = time.exec(text)
  return found === null || time.lastIndex < start + word.length ? -1 : time.lastIndex
}

/** A class with a number in its name: `Base64DecodeError`. */
function isErrorName(word: string): boolean {
  return /^[A-Za-z]+[0-9]{1,3}[A-Za-z]*(?:Error|Exception|Failure|Fault)$/.test(word)
}
