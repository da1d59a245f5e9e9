import { describe, expect, it } from 'vitest'
import { readMarkdown, readTypeScript } from './read-prose.ts'
import { checkNames, checkProse } from './rules.ts'

const inCode = (text: string): string[] =>
  checkProse(readTypeScript(text)).map(({ line, rule }) => `${line} ${rule}`)
const inMarkdown = (text: string): string[] =>
  checkProse(readMarkdown(text)).map(({ line, rule }) => `${line} ${rule}`)

describe('sentence openers', () => {
  it.each([
    '// What is older is left out.',
    '/** Who sends it changes it first. */',
    '/** Whoever comes first. */',
    '// Those that were sent stay.',
    '// Nobody reads it.',
    '// One is written while the answers go out.',
    '// Of many letters only some are sent.',
    '// Rows are read first. What is gone is skipped.',
    '// what is left',
  ])('a comment may not start a sentence without a subject: %s', (text) => {
    expect(inCode(text)).toEqual(['1 opener'])
  })

  it.each([
    '// What if the store is away?',
    '// One NOTIFY per 5 ms, regardless of load.',
    '// One of the two servers wins.',
    '// Those rows are skipped.',
    '// Of course it ends.',
    '// The rows that are left, and what is in them.',
    '// `What` is a type.',
    "const text = 'What a day'",
    'const pattern = /^\\/\\/ What is it/',
    `const url = \`http://x/\${"// What is"}\` // A URL.`,
  ])('a sentence with a subject, a question or code is accepted: %s', (text) => {
    expect(inCode(text)).toEqual([])
  })

  it('a sentence that goes over several comment lines is one sentence', () => {
    expect(inCode('// The rows that\n// Those who read them\nlet a = 1 // One is\n')).toEqual(['3 opener'])
  })

  it('a heading and the header of a table may start with "What"', () => {
    expect(inMarkdown('# What it promises\n\n| What | Who |\n|---|---|\n| a | b |\n')).toEqual([])
  })

  it('a list item and a bold lead-in are checked like a sentence', () => {
    expect(inMarkdown('- What fails is 500.\n- **Each alone.** Of many letters some go.\n')).toEqual([
      '1 opener',
      '2 opener',
    ])
  })
})

describe('test names', () => {
  it.each([
    "it('is refused', () => {})",
    "it.each([1, 2])('are left as they are: %s', () => {})",
    "it.skipIf(a(b))('that waited go back', () => {})",
    "test('of nothing there is none', () => {})",
    "describe('what is sent', () => {})",
  ])('a name without a subject is reported: %s', (text) => {
    expect(inCode(text)).toEqual(['1 opener'])
  })

  it.each([
    "it('does not postpone a letter that is leased', () => {})",
    "it('a lease that ends returns the item to waiting', () => {})",
    "expect.that('is refused')",
  ])('a statement is accepted: %s', (text) => {
    expect(inCode(text)).toEqual([])
  })
})

describe('banned words', () => {
  it('a banned word is reported in comments, strings and Markdown, also over a line break', () => {
    expect(inCode("// Requests under\n// way finish.\nconst a = 'read it anew'\n")).toEqual([
      '1 word "under way"',
      '3 word "anew"',
    ])
    expect(inMarkdown('It happens by\nitself.\n')).toEqual(['1 word "by itself"'])
  })

  it('a banned word is reported as a part of an identifier, and not inside of another word', () => {
    expect(checkNames('const isMended = mend(recommend, anew_id, amendment)').map((f) => f.excerpt)).toEqual([
      'Mended',
      'mend',
      'anew',
    ])
  })

  it('a word in code quotes or in a code block is not read', () => {
    expect(inMarkdown('The field `anew` is old.\n\n    mend it\n\n```\nmeanwhile\n```\n')).toEqual([])
  })
})

describe('width', () => {
  const wide = 'word '.repeat(23).trim()

  it('a comment or a paragraph wider than 110 columns is reported', () => {
    expect(inCode(`// ${wide}\n/**\n * ${wide}\n */\n`)).toEqual(['1 width', '3 width'])
    expect(inMarkdown(`${wide}\n`)).toEqual(['1 width'])
  })

  it('tables, code blocks, code lines and lines with a URL may be wider', () => {
    expect(inMarkdown(`| ${wide} |\n\n    ${wide}\n\n\`\`\`\n${wide}\n\`\`\`\n`)).toEqual([])
    expect(inMarkdown(`${wide} https://example.com/a\n`)).toEqual([])
    expect(inCode(`const text = '${wide}'\n`)).toEqual([])
  })
})
