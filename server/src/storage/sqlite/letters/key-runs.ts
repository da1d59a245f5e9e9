import type { Database } from '../connection/database.ts'

/** Letters in a run. A page of them by key looks into every run; a commit touches all pages of the present one. */
const runLettersMax = 16_384

/**
 * Keys come in no order. One index over all of them would have each letter touch a page of its own, and every page
 * that is touched is written twice. So the index is by run first: the letters that came one after the other are a run, whose
 * part of the index is small and stays in memory.
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

  /** The run of one more letter. What is undone is counted too: then a run is a little shorter. */
  next(): number {
    if (this.#run === undefined) {
      this.#run = newestRun(this.#database)
      this.#letters = this.#database.array(
        `select count(*) from items where ${ofRuns} and key_run = ?`,
        this.#run,
      )?.[0] as number
    }
    if (this.#letters >= this.#lettersMax) {
      this.#run++
      this.#letters = 0
    }
    this.#letters++
    return this.#run
  }
}

/** The condition of the index, word for word. */
const ofRuns = 'key is not null and group_id is not null'

function newestRun(database: Database): number {
  const sql = `select key_run from items where ${ofRuns} order by key_run desc limit 1`
  return (database.array(sql)?.[0] as number | undefined) ?? 1
}

/** Those that have letters, each found with one look into the index. */
export function listRuns(database: Database): number[] {
  const sql = `select key_run from items where ${ofRuns} and key_run > ? order by key_run limit 1`
  const runs: number[] = []
  for (let run = 0; ; ) {
    const next = database.array(sql, run)
    if (next === undefined) return runs
    run = next[0] as number
    runs.push(run)
  }
}
