/** Compares templates word by word, and finds the narrowest template that covers two of them. */
import { hole, isVariable, longHole, type Token } from './template.ts'

/** How many values a place of the message must have had before it counts as data, by the kind of words. */
const valuesNeeded = { data: 2, name: 3, word: 5 }
const placesMax = 3
/** Names in scripts without capitals have up to this many words. */
const uncasedWordsMax = 3

/** Messages of one place in the program that have nothing in common: enough of them are free text. */
const anyMessage: Wider = {
  tokens: [{ text: longHole, separator: '', kind: 'hole' }],
  places: [{ index: 0, valuesNeeded: valuesNeeded.word }],
}

/**
 * Whether the template describes the message: its holes stand for any word, its masks for recognised data.
 * `starts` gets the place in the message of each token of the template.
 */
export function covers(template: readonly Token[], tokens: readonly Token[], starts: number[] = []): boolean {
  let at = 0
  let index = 0
  /** The last long hole, and the first word behind what it stands for. */
  let holeAt = -1
  let holeEnd = 0
  while (index < tokens.length) {
    const expected = template[at]
    starts[at] = index
    if (expected !== undefined && expected.text === longHole) {
      holeAt = at++
      holeEnd = index
    } else if (expected !== undefined && matches(expected, tokens[index] as Token)) {
      at++
      index++
    } else if (holeAt >= 0) {
      at = holeAt + 1
      index = ++holeEnd
    } else return false
  }
  for (; template[at]?.text === longHole; at++) starts[at] = index
  return at === template.length
}

/** The words of a message at a place of a template that describes it. Undefined: a learned value. */
export function readPlace(
  template: readonly Token[],
  tokens: readonly Token[],
  place: number,
): string | undefined {
  const starts: number[] = []
  if (!covers(template, tokens, starts)) return ''
  // A word behind the last place was tried and did not match.
  const end = place + 1 < template.length ? starts[place + 1] : tokens.length
  const words = tokens.slice(starts[place], end)
  return words.some(({ kind }) => kind === 'hole') ? undefined : words.map(({ text }) => text).join(' ')
}

function matches(expected: Token, token: Token): boolean {
  if (expected.kind === 'hole') return true
  if (expected.kind === 'mask') return token.kind === 'mask'
  return expected.text === token.text
}

export type WideningRule = Readonly<{
  /** The share of words that must be equal. */
  similarityMin: number
  /** The stacks are equal, so several words may differ, and words may be missing. */
  isLoose: boolean
  /** Messages with nothing in common may be free text. */
  mayBeFreeText: boolean
}>

/** A place of the template that became a hole, and how many values it must have had. */
export type NewHole = Readonly<{ index: number; valuesNeeded: number }>
type Wider = Readonly<{ tokens: readonly Token[]; places: readonly NewHole[] }>

/** Undefined: the templates have too little in common. */
export function widenTemplate(
  a: readonly Token[],
  b: readonly Token[],
  rule: WideningRule,
): Wider | undefined {
  const longest = Math.max(a.length, b.length)
  if (longest === 0) return { tokens: a, places: [] }
  if (!rule.isLoose && !hasEqualStart(a, b)) return undefined
  const pairs = alignTokens(a, b)
  if (pairs.length < longest * rule.similarityMin) return rule.mayBeFreeText ? anyMessage : undefined
  const places = findDifferences(a, b, pairs)
  // Words that only one of them has, on both sides: another sentence, and not an optional part.
  const areReplaced = places.some(({ a }) => a.length === 0) && places.some(({ b }) => b.length === 0)
  const needed = places.map((place) =>
    rule.isLoose ? countValuesLoosely(place, areReplaced) : countValuesNeeded(place),
  )
  if ((!rule.isLoose && needed.length > placesMax) || needed.includes(undefined)) return undefined
  const tokens = pairs.map(([inA, inB]) => mergeEqual(a[inA] as Token, b[inB] as Token))
  // From the end, because each hole moves the words behind it.
  for (const place of places.toReversed()) tokens.splice(place.index, 0, toHole(place))
  return {
    tokens,
    places: places.map(({ index }, earlier) => ({
      index: index + earlier,
      valuesNeeded: needed[earlier] ?? valuesNeeded.data,
    })),
  }
}

/**
 * Words of both templates that stand in the same place and differ. `index`: the number of equal words before.
 */
type DifferingWords = Readonly<{ index: number; a: readonly Token[]; b: readonly Token[] }>

function findDifferences(a: readonly Token[], b: readonly Token[], pairs: readonly Pair[]): DifferingWords[] {
  const places: DifferingWords[] = []
  let [fromA, fromB] = [0, 0]
  for (const [index, [endA, endB]] of [...pairs, [a.length, b.length] as const].entries()) {
    const place = { index, a: a.slice(fromA, endA), b: b.slice(fromB, endB) }
    if (place.a.length + place.b.length > 0) places.push(place)
    fromA = endA + 1
    fromB = endB + 1
  }
  return places
}

/** A message starts with the word that says what failed; in a script without capitals, maybe with a name. */
function hasEqualStart([a, nextA]: readonly Token[], [b, nextB]: readonly Token[]): boolean {
  if (a === undefined || b === undefined || isEqual(a, b)) return a !== undefined && b !== undefined
  return (
    isUncased([a]) && isUncased([b]) && nextA !== undefined && nextB !== undefined && isEqual(nextA, nextB)
  )
}

function toHole({ a, b }: DifferingWords): Token {
  const separator = a[0]?.separator ?? b[0]?.separator ?? ' '
  const isSingle = a.length === 1 && b.length === 1 && a[0]?.text !== longHole && b[0]?.text !== longHole
  const ending = a.at(-1)?.ending ?? ''
  return { text: isSingle ? hole : longHole, separator, kind: 'hole', ending }
}

function mergeEqual(a: Token, b: Token): Token {
  return a.kind !== 'hole' && b.kind === 'hole' ? { ...b, separator: a.separator } : a
}

/** Undefined: the words cannot be one value. */
function countValuesNeeded({ a, b }: DifferingWords): number | undefined {
  if (a.length === 0 || b.length === 0) return undefined
  const isData = ({ kind }: Token) => kind !== 'word' && kind !== 'name' && kind !== 'symbol'
  if ((a.every(isData) && b.every(isData)) || arePlural(a, b)) return valuesNeeded.data
  if (isNameLike(a) && isNameLike(b)) return countNamesNeeded(a, b)
  // Names of the program are codes.
  if (isSymbol(a) && isSymbol(b)) return undefined
  // Several words in place of one are another sentence.
  if (a.length === 1 && b.length === 1) return valuesNeeded.word
  return isUncased(a) && isUncased(b) ? valuesNeeded.word : undefined
}

/** The function that throws is known to be the same. */
function countValuesLoosely(place: DifferingWords, areReplaced: boolean): number | undefined {
  const { a, b } = place
  if (a.length === 1 && b.length === 1) return countValuesNeeded(place)
  const isPlain = ({ kind }: Token) => kind === 'word' || kind === 'symbol'
  const isOptional = !areReplaced && (a.length === 0 || b.length === 0)
  return !isOptional && [...a, ...b].every(isPlain) ? valuesNeeded.word : valuesNeeded.data
}

/** `1 error`, `2 errors`. */
function arePlural(a: readonly Token[], b: readonly Token[]): boolean {
  if (a.length !== 1 || b.length !== 1) return false
  const [short, long] = [a[0]?.text ?? '', b[0]?.text ?? ''].toSorted((x, y) => x.length - y.length) as [
    string,
    string,
  ]
  return short.length >= 4 && (long === `${short}s` || long === `${short}es`)
}

function isSymbol(tokens: readonly Token[]): boolean {
  return tokens.length === 1 && tokens[0]?.kind === 'symbol'
}

/** Names may have words in between: Anna van der Meer. The first word of a sentence may be a name too. */
function isNameLike(tokens: readonly Token[]): boolean {
  const [first] = tokens
  const last = tokens.at(-1)
  if (first === undefined || last === undefined || last.kind === 'word' || last.kind === 'symbol')
    return false
  return first.kind !== 'word' || /^\p{Lu}/u.test(first.text)
}

/** Where data was recognised, a name is data too. A number may be another kind of value. */
function countNamesNeeded(a: readonly Token[], b: readonly Token[]): number {
  return isRecognised(a) || isRecognised(b) ? valuesNeeded.data : valuesNeeded.name
}

function isRecognised(tokens: readonly Token[]): boolean {
  return tokens.every(({ kind, text }) => kind === 'mask' && text !== '<n>')
}

/** Words of a script without capitals. */
function isUncased(tokens: readonly Token[]): boolean {
  return tokens.length <= uncasedWordsMax && tokens.every(({ text }) => /^[\p{Lo}\p{M}]+$/u.test(text))
}

function isEqual(a: Token, b: Token): boolean {
  return a.text === b.text || (isVariable(a.kind) && isVariable(b.kind))
}

type Pair = readonly [number, number]

/** The longest common subsequence: pairs of places with equal words. */
function alignTokens(a: readonly Token[], b: readonly Token[]): readonly Pair[] {
  const pairs: Pair[] = []
  let start = 0
  while (start < a.length && start < b.length && isEqual(a[start] as Token, b[start] as Token)) {
    pairs.push([start, start])
    start++
  }
  let tail = 0
  const shortest = Math.min(a.length, b.length) - start
  while (tail < shortest && isEqual(a[a.length - 1 - tail] as Token, b[b.length - 1 - tail] as Token)) tail++
  const middle = alignMiddle(a.slice(start, a.length - tail), b.slice(start, b.length - tail))
  for (const [indexA, indexB] of middle) pairs.push([start + indexA, start + indexB])
  for (let index = tail; index > 0; index--) pairs.push([a.length - index, b.length - index])
  return pairs
}

function alignMiddle(a: readonly Token[], b: readonly Token[]): readonly Pair[] {
  const [rows, columns] = [a.length, b.length]
  if (rows === 0 || columns === 0) return []
  const width = columns + 1
  const lengths = new Uint8Array((rows + 1) * width)
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      const at = row * width + column
      lengths[at] = isEqual(a[row] as Token, b[column] as Token)
        ? (lengths[at + width + 1] as number) + 1
        : Math.max(lengths[at + width] as number, lengths[at + 1] as number)
    }
  }
  const pairs: Pair[] = []
  let [row, column] = [0, 0]
  while (row < rows && column < columns) {
    const at = row * width + column
    if (isEqual(a[row] as Token, b[column] as Token)) pairs.push([row++, column++])
    else if ((lengths[at + width] as number) >= (lengths[at + 1] as number)) row++
    else column++
  }
  return pairs
}
