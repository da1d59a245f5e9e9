/**
 * The rules of `npm run check` about prose: words and sentence openers that make a text hard to read, and the
 * width of its lines. The lists are short on purpose: a rule stays only if it is right almost every time.
 */
import type { Block, BlockLine, Prose, WidthLine } from './blocks.ts'

export type Finding = Readonly<{ line: number; rule: string; excerpt: string; suggestion: string }>

export const columnsMax = 110

type WordRule = Readonly<{ pattern: RegExp; suggestion: string }>

const words: readonly WordRule[] = [
  { pattern: /\banew\b/i, suggestion: 'again' },
  { pattern: /\bmend(?:s|ed|ing)?\b/i, suggestion: 'repair' },
  { pattern: /\bwhence\b/i, suggestion: 'from where, or name the source' },
  { pattern: /\b(?:there|here|where)of\b/i, suggestion: 'of it; name the thing' },
  { pattern: /\bunder ?way\b/i, suggestion: 'in progress' },
  { pattern: /\bby (?:itself|themselves)\b/i, suggestion: 'automatically, or alone' },
  { pattern: /\bmeanwhile\b/i, suggestion: 'while …' },
  { pattern: /\bso many\b/i, suggestion: 'up to N; name the number' },
  { pattern: /\bfor want of\b/i, suggestion: 'because there is no …' },
  { pattern: /\b(?:is|are|was|were|be|been|being) told\b/i, suggestion: 'is reported, gets, receives' },
  { pattern: /\bhow manieth\b/i, suggestion: 'ordinal, number' },
]

/** The same words as parts of names: `mendCounts`, `isMended`. */
const nameWord = /(?<![A-Za-z])[a-z]+|[A-Z][a-z]+/g
const wordInName = /^(?:anew|mend(?:s|ed|ing)?|whence|(?:there|here)of|meanwhile)$/i

type OpenerRule = Readonly<{ pattern: RegExp; suggestion: string; isLowerCaseToo?: boolean }>

const verbs =
  'is|are|was|were|has|have|had|can|cannot|could|may|might|must|will|would|should|does|did|do|needs?|gets?|goes|comes|stays?'

const openers: readonly OpenerRule[] = [
  { pattern: /^what\b(?! if\b)/i, suggestion: 'name the subject instead of "What …"', isLowerCaseToo: true },
  { pattern: /^who(?:ever|m|se)?\b/i, suggestion: 'name the person or the program', isLowerCaseToo: true },
  { pattern: /^(?:whatever|whichever)\b/i, suggestion: 'name the subject', isLowerCaseToo: true },
  {
    pattern: new RegExp(
      `^those (?:who|that|which|whose|of|in|with|without|to|from|at|on|not|still|already|only|${verbs})\\b`,
      'i',
    ),
    suggestion: 'put a noun after "Those", or name the subject',
    isLowerCaseToo: true,
  },
  {
    pattern: /^(?:nobody|somebody|someone|no one)\b/i,
    suggestion: 'name the person or the program',
    isLowerCaseToo: true,
  },
  {
    pattern: new RegExp(`^One (?:that|who|which|whose|with|without|at a time|after|${verbs})\\b`),
    suggestion: 'put a noun after "One"',
  },
  { pattern: /^Of (?!course\b)/, suggestion: 'start with the subject, not with "Of …"' },
]

/** An `it` that starts with one of these words has no subject without the `describe` around it. */
const nameFragment = new RegExp(`^(?!do|did)(?:${verbs}|that|which|of|and|or|but|nor|also|too)\\b`)

export function checkProse(prose: Prose): Finding[] {
  return [
    ...prose.widths.flatMap(checkWidth),
    ...prose.blocks.flatMap((block) => [...checkWords(block), ...checkOpeners(block)]),
  ].toSorted((a, b) => a.line - b.line)
}

/** Finds banned words in identifiers. `code` is a file without its comments and strings. */
export function checkNames(code: string): Finding[] {
  return code.split('\n').flatMap((line, index) =>
    (line.match(nameWord) ?? [])
      .filter((word) => wordInName.test(word))
      .map((word) => ({
        line: index + 1,
        rule: 'word in a name',
        excerpt: word,
        suggestion: 'an ordinary word, such as repair, again or source',
      })),
  )
}

/** For files that are neither Markdown nor TypeScript: only the words, line by line. */
export function checkText(text: string): Finding[] {
  return text
    .split('\n')
    .flatMap((line, index) => checkWords({ kind: 'string', lines: [{ number: index + 1, text: line }] }))
}

function checkWidth({ number, text }: WidthLine): Finding[] {
  const width = [...text].length
  if (width <= columnsMax || /https?:\/\/\S/.test(text) || /^\s*(?:\/\/|\*|\/\*\*)?\s*\|/.test(text))
    return []
  const excerpt = `${width} columns: ${text.trim().slice(0, 60)}…`
  return [{ line: number, rule: 'width', excerpt, suggestion: `wrap at ${columnsMax} columns` }]
}

function checkWords(block: Block): Finding[] {
  const { text, lineAt } = join(block.lines)
  return words.flatMap(({ pattern, suggestion }) =>
    [...text.matchAll(new RegExp(pattern, 'gi'))].map((match) => ({
      line: lineAt(match.index),
      rule: `word "${match[0].toLowerCase()}"`,
      excerpt: text.slice(Math.max(0, match.index - 30), match.index + match[0].length + 30),
      suggestion,
    })),
  )
}

function checkOpeners(block: Block): Finding[] {
  if (block.kind === 'string' || block.kind === 'heading') return []
  const { text, lineAt } = join(block.lines)
  const found = sentences(text).flatMap(({ start, sentence }) => {
    const suggestion = badOpener(block, sentence, start === 0)
    if (suggestion === undefined) return []
    return [{ line: lineAt(start), rule: 'opener', excerpt: sentence.slice(0, 70), suggestion }]
  })
  return found
}

function badOpener(block: Block, sentence: string, isFirst: boolean): string | undefined {
  const isTestName = block.kind === 'it' || block.kind === 'describe'
  if (sentence.endsWith('?') && !isTestName) return undefined
  if (block.kind === 'cell' && isFirst && !/[.!]$/.test(sentence)) return undefined
  const opener = openers.find(({ pattern }) => pattern.test(sentence))
  const isCapital = /^[A-Z]/.test(sentence)
  if (opener !== undefined && (isCapital || (isFirst && opener.isLowerCaseToo === true))) {
    return opener.suggestion
  }
  if (block.kind === 'it' && nameFragment.test(sentence) && isFirst) {
    return 'name the subject, so that the name can be read without its describe'
  }
  return undefined
}

/** Splits at `.`, `!`, `?` and `:` before a capital. An abbreviation such as `e.g.` has no capital after it. */
function sentences(text: string): { start: number; sentence: string }[] {
  const starts = [0, ...[...text.matchAll(/[.!?:][)"'”]?\s+(?=[A-Z])/g)].map((m) => m.index + m[0].length)]
  return starts.map((start, index) => ({ start, sentence: text.slice(start, starts[index + 1]).trim() }))
}

function join(lines: readonly BlockLine[]): { text: string; lineAt: (offset: number) => number } {
  const ends: number[] = []
  let text = ''
  for (const line of lines) {
    text += text === '' ? line.text : ` ${line.text}`
    ends.push(text.length)
  }
  const lineAt = (offset: number): number => lines[ends.findIndex((end) => offset < end)]?.number ?? 0
  return { text, lineAt }
}
