/**
 * Checks the prose of the repository: comments, test names and Markdown. Part of `npm run check`.
 *
 *     node tools/check-prose.ts                    fails if there are findings
 *     node tools/check-prose.ts --report           counts all findings by folder
 *     node tools/check-prose.ts --report docs      lists all findings in a folder or file
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readMarkdown, readTypeScript } from './prose/read-prose.ts'
import { checkNames, checkProse, checkText, type Finding } from './prose/rules.ts'
import { repository } from './run-program.ts'

type FileFinding = Finding & Readonly<{ path: string }>

// The rules and their test quote the words that they forbid.
const exempt = [/(?:^|\/)generated\//, /^LICENSE$/, /(?:^|\/)package-lock\.json$/, /^tools\/prose\/rules/]

// The SQL of a released migration is never edited, so only its comments in TypeScript are checked.
const released = /^server\/src\/storage\/[a-z]+\/migrations\/(?:\d{4}_[a-z-]+|dlq-schema|dlq-statements)\.ts$/

function trackedFiles(): string[] {
  const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: repository,
    encoding: 'utf8',
  })
  return list
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(repository, path)))
    .filter((path) => !exempt.some((pattern) => pattern.test(path)))
}

function checkFile(path: string): FileFinding[] {
  const text = readFileSync(join(repository, path), 'utf8')
  return findingsIn(path, text).map((finding) => ({ ...finding, path }))
}

function findingsIn(path: string, text: string): Finding[] {
  if (path.endsWith('.md')) return checkProse(readMarkdown(text))
  if (!/\.tsx?$/.test(path)) return checkText(text)
  const prose = readTypeScript(text)
  if (released.test(path)) {
    return checkProse({ ...prose, blocks: prose.blocks.filter(({ kind }) => kind !== 'string') })
  }
  return [...checkProse(prose), ...checkNames(prose.code)]
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)

function print(findings: readonly FileFinding[]): void {
  for (const { path, line, rule, excerpt, suggestion } of findings) {
    console.log(`${path}:${line}  ${rule}  «${excerpt}»  → ${suggestion}`)
  }
}

function printCounts(findings: readonly FileFinding[]): void {
  const counts = new Map<string, number>()
  for (const { path } of findings) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  for (const [folder, count] of [...counts].toSorted()) console.log(`${String(count).padStart(6)}  ${folder}`)
}

const [option, ...folders] = process.argv.slice(2)
const all = trackedFiles().flatMap(checkFile)
if (option === '--report') {
  const findings = all.filter(({ path }) => folders.length === 0 || folders.some((f) => isBelow(path, f)))
  if (folders.length === 0) printCounts(findings)
  else print(findings)
  console.log(`${findings.length} findings`)
} else {
  print(all)
  if (all.length > 0) process.exitCode = 1
  console.log(`${all.length} findings`)
}
