import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'

/** Letters in a run. A search by key looks into every run; a commit touches all pages of the current run. */
const runLettersMax = 16_384

/**
 * Numbers the runs of letters with keys. Keys arrive in no order, so in one index over all keys each letter
 * would touch a page of its own, and every touched page is written twice. Therefore the index starts with the
 * run: letters that arrived one after the other form a run, whose part of the index is small and stays in
 * memory.
 */
export class KeyRuns {
  readonly #database: Database
  readonly #lettersMax: number
  #run: number | undefined
  #letters = 0

  constructor(database: Database, lettersMax = runLettersMax) {
    this.#database = database
    this.#lettersMax = lettersMax
  }

  /**
   * The run of the next letter. Letters that are rolled back count too, which makes a run a little shorter.
   */
  allocate(): number {
    if (this.#run === undefined) {
      this.#run = readNewestRun(this.#database)
      const sql = `select count(*) from items where ${hasRunSql} and key_run = ?`
      this.#letters = readNumber(this.#database.getArray(sql, this.#run) ?? [], 0)
    }
    if (this.#letters >= this.#lettersMax) {
      this.#run++
      this.#letters = 0
    }
    this.#letters++
    return this.#run
  }
}

/** The condition of the partial index: SQLite uses the index only if the texts are equal. */
const hasRunSql = 'key is not null and group_id is not null'

function readNewestRun(database: Database): number {
  const row = database.getArray(`select key_run from items where ${hasRunSql} order by key_run desc limit 1`)
  return row === undefined ? 1 : readNumber(row, 0)
}

/** The runs that have letters. Each is found with one index lookup. */
export function listRuns(database: Database): number[] {
  const sql = `select key_run from items where ${hasRunSql} and key_run > ? order by key_run limit 1`
  const runs: number[] = []
  for (let run = 0; ; ) {
    const next = database.getArray(sql, run)
    if (next === undefined) return runs
    run = readNumber(next, 0)
    runs.push(run)
  }
}
