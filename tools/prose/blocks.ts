/** Text as the rules read it: a paragraph, a list item, a table cell or a string, without its markup. */
export type Block = Readonly<{
  kind: 'comment' | 'markdown' | 'cell' | 'heading' | 'it' | 'describe' | 'string'
  /** One entry per source line, so that a finding can name its line. */
  lines: readonly BlockLine[]
}>

export type BlockLine = Readonly<{ number: number; text: string }>

/** A line whose width is checked. */
export type WidthLine = Readonly<{ number: number; text: string }>

export type Prose = Readonly<{ blocks: readonly Block[]; widths: readonly WidthLine[] }>

const listItem = /^\s*(?:[-*+]|\d+[.)])\s+/
const codeFence = /^\s*(?:```|~~~)/
const indentedCode = /^\s{4,}\S/

/** Collects lines into paragraphs. Fenced and indented code and tables are left out of the widths. */
export class BlockCollector {
  readonly blocks: Block[] = []
  readonly widths: WidthLine[] = []
  readonly #kind: 'comment' | 'markdown'
  #open: BlockLine[] = []
  #isFenced = false
  #isListItem = false

  constructor(kind: 'comment' | 'markdown') {
    this.#kind = kind
  }

  /** `source` is the whole line, whose width counts; `text` is the same line without a comment's markers. */
  add(number: number, text: string, source: string): void {
    if (codeFence.test(text)) {
      this.end()
      this.#isFenced = !this.#isFenced
    } else if (this.#isFenced) return
    else if (text.trim() === '') this.end()
    else if (text.trimStart().startsWith('|')) this.#addTableRow(number, text)
    else if (this.#isCode(text)) return
    else this.#addProse(number, text, source)
  }

  /** Ends the paragraph. The next line starts another one. */
  end(): void {
    if (this.#open.length > 0) this.blocks.push({ kind: this.#kind, lines: this.#open })
    this.#open = []
  }

  #isCode(text: string): boolean {
    if (this.#open.length > 0 || !indentedCode.test(text)) return false
    return !this.#isListItem || /^\s{6,}/.test(text)
  }

  #addTableRow(number: number, text: string): void {
    this.end()
    if (/^[\s|:-]+$/.test(text)) return
    for (const cell of text.split('|')) {
      if (cell.trim() !== '') this.blocks.push({ kind: 'cell', lines: [{ number, text: plain(cell) }] })
    }
  }

  #addProse(number: number, text: string, source: string): void {
    this.widths.push({ number, text: source })
    if (text.trimStart().startsWith('>')) return
    if (/^#{1,6} /.test(text)) {
      this.end()
      this.blocks.push({ kind: 'heading', lines: [{ number, text: plain(text) }] })
      this.#isListItem = false
      return
    }
    if (listItem.test(text)) {
      this.end()
      this.#isListItem = true
    } else if (/^\S/.test(text) && this.#open.length === 0) this.#isListItem = false
    this.#open.push({ number, text: plain(text.replace(listItem, '')) })
  }
}

/** Code becomes `…`, so that no rule reads it; emphasis and link targets go. */
export function plain(text: string): string {
  return text
    .replace(/`[^`]*`/g, '…')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/https?:\/\/\S+/g, '…')
    .replace(/\*\*|__|[[\]]/g, '')
    .trim()
}
