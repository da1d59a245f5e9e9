/** Recognises numbers that are codes by the text around them: statuses of HTTP, errno, codes of databases. */
import { sqlStates, statusPhrases } from './words.ts'

/** `output`: the masked text in front of the number. `after`: the text behind it. `before`: the last word. */
type Context = Readonly<{ text: string; output: string; after: string; before: string }>

/** A short code of a bank or a vendor: AC04, R01, E55. */
export const shortCode = /^[A-Z]{1,4}[0-9]{1,4}$/

export function isCodeByContext(word: string, context: Context): boolean {
  if (/^(?:[0-9]{2}[A-Z][0-9]{2}|[0-9][A-Z][0-9]{3})$/.test(word)) return true
  // The reason of Active Directory: LdapErr: DSID-…, comment: …, data 52e.
  if (/^[0-9a-f]{3,4}$/.test(word) && context.before === 'data' && context.text.includes('LdapErr'))
    return true
  return isDatabaseCode(word, context) || isErrno(word, context) || isStatus(word, context)
}

function isDatabaseCode(word: string, { output, after, before }: Context): boolean {
  // MySQL: 1045 (28000), ERROR 1205 (HY000).
  if (/^[0-9]{4}$/.test(word) && /^ \([0-9A-Z]{5}\)/.test(after)) return true
  if (/^[0-9]{5}$/.test(word) && output.endsWith('(') && /^[0-9]{4}$/.test(before)) return true
  if (sqlStates.has(word) && /[([]$/.test(output) && /^[)\]]/.test(after)) return true
  // SQL Server: Msg 2627, Level 14.
  return /^[0-9]{2,6}$/.test(word) && /^, Level [0-9]/.test(after)
}

/** The arguments of an error of Python: (111, 'Connection refused'). */
function isErrno(word: string, { output, after }: Context): boolean {
  return /^[0-9]{1,5}$/.test(word) && output.endsWith('(') && /^, ["']/.test(after)
}

function isStatus(word: string, { text, output, after, before }: Context): boolean {
  // An enhanced status code of SMTP.
  if (/^[245]\.[0-9]{1,3}\.[0-9]{1,3}$/.test(word)) return /^[245][0-9]{2}$/.test(before)
  if (!/^[1-5][0-9]{2}$/.test(word)) return false
  const next = /^\s\(?([A-Z][A-Za-z-]*)/.exec(after)?.[1]
  if (next !== undefined && statusPhrases.has(next)) return true
  if (/^ Server Error\b/.test(after) || /^[ -][245]\.[0-9]{1,3}\.[0-9]{1,3}\b/.test(after)) return true
  return /^[45]/.test(word) && standsAsStatus(output, after) && mentionsHttp.test(text)
}

const mentionsHttp =
  /\bhttps?\b|\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b|\b(?:request|response|webhook|endpoint)\b/i

/** Behind a colon, in brackets or behind a URL, where the text or its part ends. */
function standsAsStatus(output: string, after: string): boolean {
  if (/:\/\/\S+ $/.test(output.slice(-200))) return true
  return /(?::|[([]) ?$/.test(output) && /^(?:$|[)\].,;]|\s[([])/.test(after)
}
