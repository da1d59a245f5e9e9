import type { Values } from './values.ts'

/** A labelled failure. `cause`: the true cause; near misses are named `family~variant`. */
export type LabelledFailure = Readonly<{
  cause: string
  queue: string
  errorClass: string
  message: string
  stack: string
}>

export type WrittenFailure = Readonly<{ message: string; stack?: string }>

/** One cause of failures. `write` is called for each failure of it. */
export type CauseDefinition = Readonly<{
  cause: string
  queue: string
  errorClass: string
  write(values: Values): WrittenFailure
}>

/** The names that the causes of one corpus share. Another seed gives other names. */
export type World = Readonly<{
  values: Values
  /** A company in lower case, as in packages: `northwind`. */
  company: string
  /** An area of the business, in lower case: `billing`. */
  area(): string
  /** A thing of the business, in lower case: `order`. Each is returned once. */
  thing(): string
  /** A verb, in lower case: `reserve`. Each is returned once. */
  verb(): string
}>

const companies = 'northwind|lumenbay|quarrystone|brightferry|oakline|tidewater|redcedar|palefox'.split('|')
const areas =
  'billing|shipping|catalog|accounts|pricing|loyalty|tickets|payroll|claims|search|inventory|documents'.split(
    '|',
  )
const things = (
  'order|invoice|parcel|refund|coupon|subscription|shipment|ticket|policy|wallet|basket|booking|mandate|claim|' +
  'quote|voucher|account|statement|profile|address|review|contract|deposit|transfer|reminder|campaign|template|' +
  'device|sensor|route|driver|warehouse|supplier|tariff|permit|licence|badge|session|folder|report'
).split('|')
const verbs = (
  'reserve|confirm|cancel|enrich|export|index|settle|notify|archive|validate|capture|publish|resolve|approve|' +
  'allocate|dispatch|convert|merge|translate|verify|rank|schedule|upload|print|sign'
).split('|')

export function createWorld(values: Values): World {
  const [shuffledThings, shuffledVerbs] = [values.shuffle(things), values.shuffle(verbs)]
  return {
    values,
    company: values.pick(companies),
    area: () => values.pick(areas),
    thing: takeNext(shuffledThings),
    verb: takeNext(shuffledVerbs),
  }
}

/** Starts again with a suffix when all values are taken. */
function takeNext(values: readonly string[]): () => string {
  let index = 0
  return () => {
    const [value, round] = [values[index % values.length] as string, Math.floor(index / values.length)]
    index++
    return round === 0 ? value : `${value}${toLetters(round)}`
  }
}

function toLetters(round: number): string {
  return round === 1 ? 'Item' : `Part${'x'.repeat(round)}`
}

export function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
