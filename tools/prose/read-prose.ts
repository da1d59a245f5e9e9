import { type Block, BlockCollector, type Prose, plain, type WidthLine } from './blocks.ts'
import { type ScannedFile, type Span, scanTypeScript, testFunctionOf } from './scan-typescript.ts'

export function readMarkdown(text: string): Prose {
  const collector = new BlockCollector('markdown')
  for (const [index, line] of text.split('\n').entries()) collector.add(index + 1, line, line)
  collector.end()
  return collector
}

export function readTypeScript(text: string): Prose & Readonly<{ code: string }> {
  const file = scanTypeScript(text)
  const lineAt = lineFinder(text)
  const comments = readComments(text, file, lineAt)
  return {
    blocks: [...comments.blocks, ...readStrings(text, file, lineAt)],
    widths: comments.widths,
    code: file.code,
  }
}

type LineFinder = (offset: number) => number

function lineFinder(text: string): LineFinder {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return low + 1
  }
}

function readComments(text: string, file: ScannedFile, lineAt: LineFinder): Prose {
  const sources = text.split('\n')
  const blocks: Block[] = []
  const widths: WidthLine[] = []
  let collector = new BlockCollector('comment')
  let lineBefore = -1
  const finish = (): void => {
    collector.end()
    blocks.push(...collector.blocks)
    widths.push(...collector.widths)
    collector = new BlockCollector('comment')
  }
  for (const span of file.comments) {
    const first = lineAt(span.start)
    const comment = text.slice(span.start, span.end)
    const isLineComment = comment.startsWith('//')
    if (!isLineComment || !continues(sources, first, lineBefore)) finish()
    for (const [index, line] of withoutMarkers(comment).entries()) {
      collector.add(first + index, line, sources[first + index - 1] ?? '')
    }
    if (!isLineComment) finish()
    lineBefore = isLineComment ? first : -1
  }
  finish()
  return { blocks, widths }
}

/** A line comment goes on with the sentence of the one above it only if both stand alone on their lines. */
function continues(sources: readonly string[], line: number, lineBefore: number): boolean {
  if (lineBefore !== line - 1) return false
  return [line, lineBefore].every((number) => (sources[number - 1] ?? '').trimStart().startsWith('//'))
}

const directive = /^\s*(?:biome-ignore|@vitest|@ts-|#!)/

function withoutMarkers(comment: string): string[] {
  if (comment.startsWith('//')) {
    const line = comment.replace(/^\/\/\/? ?/, '')
    return [directive.test(line) ? '' : line]
  }
  const lines = comment
    .slice(0, -2)
    .replace(/^\/\*+ ?/, '')
    .split('\n')
  return lines.map((line, index) => (index === 0 ? line : line.replace(/^\s*\*? ?/, '')))
}

function readStrings(text: string, file: ScannedFile, lineAt: LineFinder): Block[] {
  return file.strings.map((span) => {
    const kind = testFunctionOf(file.code, span.start) ?? 'string'
    const first = lineAt(span.start)
    const lines = literalText(text, span).split('\n')
    return { kind, lines: lines.map((line, index) => ({ number: first + index, text: plain(line) })) }
  })
}

function literalText(text: string, span: Span): string {
  return text
    .slice(span.start, span.end)
    .replace(/\$\{[^}\n]*\}/g, '…')
    .replaceAll("\\'", "'")
}
