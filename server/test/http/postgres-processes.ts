/** The processes of a PostgreSQL server, so that a test can stop them all as on a machine that hangs. */
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPgClient } from '../../src/storage/postgres/connection/tls-connection.ts'

/** The server process and the processes that it has started. Linux only. */
export async function findPostgresProcesses(url: string): Promise<readonly number[]> {
  const client = createPgClient(url)
  await client.connect()
  const { rows } = await client.query<{ data_directory: string }>('show data_directory')
  await client.end()
  const lines = await readFile(join(rows[0]?.data_directory ?? '', 'postmaster.pid'), 'utf8')
  const server = Number.parseInt(lines, 10)
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return [server, ...pids.map(Number).filter((pid) => readParent(pid) === server)]
}

export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // A process may have ended in the meantime.
    }
  }
}

function readParent(pid: number): number | undefined {
  try {
    // The name of the program is in parentheses and may contain spaces.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return Number(parent)
  } catch {
    return undefined
  }
}
