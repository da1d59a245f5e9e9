/** Runs the HTTP client in its own process, and measures the CPU time that the server uses. */
import { fork } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { HttpFigures, HttpLoad } from './http-client.ts'

/** `cpuUs`: CPU time of the server per item, in microseconds. Null if its processes are not known. */
export type HttpResult = HttpFigures & Readonly<{ cpuUs: number | null }>

/** `pid`: the server, which is measured together with the processes that it started. */
export function runHttpClient(load: HttpLoad, pid?: number): Promise<HttpResult> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('http-client.ts', import.meta.url)), [JSON.stringify(load)])
    let usedBefore: number | null = null
    child.on('message', (message: HttpFigures | 'counting') => {
      if (message === 'counting') {
        usedBefore = readCpuSeconds(pid)
        return
      }
      const used = readCpuSeconds(pid)
      const items = message.perSecond * load.seconds
      const cpuUs = used === null || usedBefore === null ? null : ((used - usedBefore) * 1e6) / items
      resolve({ ...message, cpuUs })
    })
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(new Error(`the HTTP client ended with code ${code} and without figures`)),
    )
  })
}

/** Linux reports CPU time in hundredths of a second. */
const ticksPerSecond = 100

function readCpuSeconds(pid: number | undefined): number | null {
  if (pid === undefined || process.platform !== 'linux') return null
  return listProcesses(pid).reduce((sum, id) => sum + readTicks(id), 0) / ticksPerSecond
}

function listProcesses(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((id) => readStat(id)[1] === String(pid))
  return [pid, ...children.flatMap(listProcesses)]
}

/** User and system time. */
function readTicks(pid: number): number {
  const fields = readStat(pid)
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
}

/** The fields after the name of the program: state, parent, … */
function readStat(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
