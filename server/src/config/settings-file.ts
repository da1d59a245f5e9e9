import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { KnownError } from '../errors.ts'
import type { Given } from './origin.ts'

/**
 * What a settings file sets. Maps inside maps are names joined with dots: `log: { level: debug }` and
 * `log.level: debug` are the same.
 *
 * Complaints give the line and never quote it: it may hold a secret.
 */
export function settingsFileGivens(path: string, text: string): Given[] {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const problem = document.errors[0]
  if (problem !== undefined) {
    const what = problem.code.toLowerCase().replaceAll('_', ' ')
    throw new KnownError(
      'SETTING_INVALID',
      `${path} line ${lines.linePos(problem.pos[0]).line} cannot be read as YAML: ${what}`,
    )
  }
  const root = document.contents
  if (root === null || (isScalar(root) && root.value === null)) return []
  if (!isMap(root))
    throw new KnownError('SETTING_INVALID', `${path} must hold settings as "name: value" lines`)

  const givens: Given[] = []
  collect({ document, path, lineAt: (offset) => lines.linePos(offset).line, givens }, '', root)
  refuseTwice(givens, path)
  return givens
}

type Walk = Readonly<{
  document: Document
  path: string
  lineAt: (offset: number) => number
  givens: Given[]
}>

function collect(walk: Walk, prefix: string, node: unknown): void {
  if (!isMap(node)) return
  for (const { key, value } of node.items) {
    const name = `${prefix}${isScalar(key) ? String(key.value) : '?'}`
    const line = isScalar(key) && key.range ? walk.lineAt(key.range[0]) : 1
    const target = isAlias(value) ? value.resolve(walk.document) : value
    if (isMap(target)) collect(walk, `${name}.`, target)
    else walk.givens.push({ name, text: textOf(walk, name, line, target), origin: fileOrigin(walk, line) })
  }
}

function fileOrigin(walk: Walk, line: number): Given['origin'] {
  return { kind: 'file', path: walk.path, line }
}

function textOf(walk: Walk, name: string, line: number, node: unknown): string {
  if (isSeq(node)) return node.items.map((entry) => textOf(walk, name, line, entry)).join(',')
  // The text as written: a password 0123 must not become the number 123.
  if (isScalar(node) && node.value !== null) return node.source ?? String(node.value)
  throw new KnownError(
    'SETTING_INVALID',
    `${name} in ${walk.path} line ${line} has no value: write one, or remove the line`,
  )
}

function refuseTwice(givens: readonly Given[], path: string): void {
  const seen = new Set<string>()
  for (const { name } of givens) {
    if (seen.has(name)) throw new KnownError('SETTING_INVALID', `${name} is set twice in ${path}`)
    seen.add(name)
  }
}
