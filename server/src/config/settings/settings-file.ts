import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { KnownError } from '../../errors.ts'
import type { RawSetting } from './origin.ts'

/**
 * Reads the values of a settings file. Nested maps are names joined with dots: `log: { level: debug }` and
 * `log.level: debug` are the same.
 *
 * Error messages contain the number of a line but not its text, which may contain a secret.
 */
export function parseSettingsFile(path: string, text: string): RawSetting[] {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const problem = document.errors[0]
  if (problem !== undefined) {
    const reason = problem.code.toLowerCase().replaceAll('_', ' ')
    throw new KnownError(
      'SETTING_INVALID',
      `${path} line ${lines.linePos(problem.pos[0]).line} cannot be read as YAML: ${reason}`,
    )
  }
  const root = document.contents
  if (root === null || (isScalar(root) && root.value === null)) return []
  if (!isMap(root))
    throw new KnownError('SETTING_INVALID', `${path} must contain settings as "name: value" lines`)

  const givens: RawSetting[] = []
  collect({ document, path, lineAt: (offset) => lines.linePos(offset).line, givens }, '', root)
  refuseDuplicates(givens, path)
  return givens
}

type Walk = Readonly<{
  document: Document
  path: string
  lineAt: (offset: number) => number
  givens: RawSetting[]
}>

function collect(walk: Walk, prefix: string, node: unknown): void {
  if (!isMap(node)) return
  for (const { key, value } of node.items) {
    const name = `${prefix}${isScalar(key) ? String(key.value) : '?'}`
    const line = isScalar(key) && key.range ? walk.lineAt(key.range[0]) : 1
    const target = isAlias(value) ? value.resolve(walk.document) : value
    if (hasStructure(name, target)) {
      const text = JSON.stringify(readStructure(walk, name, line, target))
      walk.givens.push({ name, text, origin: createFileOrigin(walk, line) })
    } else if (isMap(target)) collect(walk, `${name}.`, target)
    else
      walk.givens.push({
        name,
        text: readText(walk, name, line, target),
        origin: createFileOrigin(walk, line),
      })
  }
}

/** Settings whose value is a map, or a list of maps. Its scalars stay texts, as they are written. */
const structured: ReadonlySet<string> = new Set([
  'kafka.clusters',
  'webhooks.producers',
  'webhooks.channels',
  'webhooks.consumers',
  'alerts.rules',
])

function hasStructure(name: string, target: unknown): boolean {
  return structured.has(name) && (isMap(target) || isSeq(target))
}

function readStructure(walk: Walk, name: string, line: number, node: unknown): unknown {
  const target = isAlias(node) ? node.resolve(walk.document) : node
  if (isSeq(target)) return target.items.map((entry) => readStructure(walk, name, line, entry))
  if (!isMap(target)) return readText(walk, name, line, target)
  return Object.fromEntries(
    target.items.map(({ key, value }) => [
      isScalar(key) ? String(key.value) : '?',
      readStructure(walk, name, line, value),
    ]),
  )
}

function createFileOrigin(walk: Walk, line: number): RawSetting['origin'] {
  return { kind: 'file', path: walk.path, line }
}

function readText(walk: Walk, name: string, line: number, node: unknown): string {
  if (isSeq(node)) return node.items.map((entry) => readText(walk, name, line, entry)).join(',')
  // Keep the text as written: the password 0123 must not become the number 123.
  if (isScalar(node) && node.value !== null) return node.source ?? String(node.value)
  throw new KnownError(
    'SETTING_INVALID',
    `${name} in ${walk.path} line ${line} has no value: write one, or remove the line`,
  )
}

function refuseDuplicates(givens: readonly RawSetting[], path: string): void {
  const seen = new Set<string>()
  for (const { name } of givens) {
    if (seen.has(name)) throw new KnownError('SETTING_INVALID', `${name} is set twice in ${path}`)
    seen.add(name)
  }
}
