/** HTTP dates of RFC 9110: whole seconds in GMT. */
import { type Instant, usPerMs, usPerSecond } from './instant.ts'

/** For example `Sun, 06 Nov 1994 08:49:37 GMT`. Fractions of a second are cut off. */
export function formatHttpDate(instant: Instant): string {
  return new Date(Math.floor(instant / usPerSecond) * 1_000).toUTCString()
}

/** The instant that `formatHttpDate` keeps of an instant, for comparing a row with a received date. */
export function toWholeSecond(instant: Instant): Instant {
  return Math.floor(instant / usPerSecond) * usPerSecond
}

const time = '(\\d\\d):(\\d\\d):(\\d\\d)'
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

type Fields = Readonly<{ day: string; month: string; year: string; time: readonly string[] }>

/** The preferred form and the two obsolete ones, which a recipient must still accept. */
const forms: readonly Readonly<{ pattern: RegExp; read: (match: string[]) => Fields }>[] = [
  {
    pattern: new RegExp(`^[a-z]{3}, (\\d\\d) ([a-z]{3}) (\\d{4}) ${time} GMT$`, 'i'),
    read: ([, day = '', month = '', year = '', ...rest]) => ({ day, month, year, time: rest }),
  },
  {
    pattern: new RegExp(`^[a-z]{6,9}, (\\d\\d)-([a-z]{3})-(\\d\\d) ${time} GMT$`, 'i'),
    read: ([, day = '', month = '', year = '', ...rest]) => ({
      day,
      month,
      year: toFullYear(year),
      time: rest,
    }),
  },
  {
    pattern: new RegExp(`^[a-z]{3} ([a-z]{3}) ([ \\d]\\d) ${time} (\\d{4})$`, 'i'),
    read: ([, month = '', day = '', hours = '', minutes = '', seconds = '', year = '']) => ({
      day,
      month,
      year,
      time: [hours, minutes, seconds],
    }),
  },
]

/** Undefined: the text is not an HTTP date, or the date does not exist. The weekday is not checked. */
export function parseHttpDate(text: string): Instant | undefined {
  for (const { pattern, read } of forms) {
    const match = pattern.exec(text.trim())
    if (match !== null) return toInstant(read(match))
  }
  return undefined
}

function toInstant(fields: Fields): Instant | undefined {
  const month = months.indexOf(fields.month.toLowerCase())
  const day = Number(fields.day)
  const [hours = 0, minutes = 0, seconds = 0] = fields.time.map(Number)
  // A leap second is accepted, as the first second of the next minute.
  if (month < 0 || hours > 23 || minutes > 59 || seconds > 60) return undefined
  const date = new Date(0)
  date.setUTCFullYear(Number(fields.year), month, day)
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return undefined
  return (date.getTime() + ((hours * 60 + minutes) * 60 + seconds) * 1_000) * usPerMs
}

/**
 * Two digits are from 1970 to 2069. The RFC counts from the current year instead; the obsolete form is only
 * sent by programs that are older than that difference.
 */
function toFullYear(twoDigits: string): string {
  return Number(twoDigits) < 70 ? `20${twoDigits}` : `19${twoDigits}`
}
