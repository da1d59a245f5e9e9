/**
 * Reads labelled failures: corpora of failures (`*.ndjson`, `*.ndjson.gz`), and log sets (`loghub/*.csv`).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { LabelledFailure } from '../../server/test/labelled-failures/cause.ts'
import { UnmetRequirement } from '../unmet-requirement.ts'

export type DataSet = Readonly<{ name: string; failures: readonly LabelledFailure[] }>
export type GroupingData = Readonly<{ corpora: readonly DataSet[]; logs: readonly DataSet[] }>

export function readGroupingData(folder: string): GroupingData {
  if (!existsSync(folder)) throw new UnmetRequirement(`there is no folder ${folder}`)
  const corpora = readdirSync(folder)
    .filter((name) => /\.ndjson(?:\.gz)?$/.test(name))
    .toSorted()
    .map((name) => ({
      name: name.replace(/\.ndjson(?:\.gz)?$/, ''),
      failures: readCorpus(join(folder, name)),
    }))
  const logFolder = join(folder, 'loghub')
  const logs = (existsSync(logFolder) ? readdirSync(logFolder) : [])
    .filter((name) => name.endsWith('.csv'))
    .toSorted()
    .map((name) => ({ name: name.replace(/\.csv$/, ''), failures: readLog(join(logFolder, name)) }))
  if (corpora.length + logs.length === 0) {
    throw new UnmetRequirement(`${folder} has neither *.ndjson, *.ndjson.gz nor loghub/*.csv`)
  }
  return { corpora, logs }
}

function readCorpus(path: string): LabelledFailure[] {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const row = JSON.parse(line) as Readonly<Record<string, string | null | undefined>>
      return {
        cause: row.cause ?? '',
        queue: row.queue ?? '',
        errorClass: row.error_class ?? '',
        message: row.message ?? '',
        stack: row.stack ?? '',
      }
    })
}

function readLog(path: string): LabelledFailure[] {
  const [header = [], ...rows] = parseCsv(readFileSync(path, 'utf8'))
  const [template, message] = [header.indexOf('template'), header.indexOf('message')]
  return rows.map((row) => ({
    cause: row[template] ?? '',
    queue: 'logs',
    errorClass: '',
    message: row[message] ?? '',
    stack: '',
  }))
}

/** Fields may be quoted, with doubled quotes inside. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy
  for (let found = field.exec(text); found !== null; found = field.exec(text)) {
    const [whole, quoted, plain = '', end] = found
    rows.at(-1)?.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (whole === '' || (end !== ',' && field.lastIndex >= text.length)) break
    if (end !== ',') rows.push([])
  }
  return rows.filter((row) => row.length > 1)
}
