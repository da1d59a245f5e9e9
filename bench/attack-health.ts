/**
 * Asks /healthz every 20 ms and reads the memory of the server, in a thread of its own: sending a large body
 * would delay the checks. A control server is asked at the same times.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

export type HealthTarget = Readonly<{ url: string; pid: number; controlUrl: string }>
export type HealthFigures = Readonly<{
  /** The longest time without an answer. */
  unansweredMs: number
  /**
   * The longest time without an answer, minus the delay of the machine: the time that the server's thread
   * waited for a CPU, or that the control server did not answer either.
   */
  causedMs: number
  rssBefore: number
  rssMax: number
}>

type Check = Readonly<{ startedMs: number; endedMs: number; cpuWaitMs: number }>

const msMax = 60_000
const pauseMs = 20
const { url, pid, controlUrl } = workerData as HealthTarget
const rssBefore = readRss()
let rssMax = 0
let isStopping = false

parentPort?.once('message', () => {
  isStopping = true
})
const [checks, controls] = await Promise.all([
  checkUntilStopped(`${url}/healthz`),
  checkUntilStopped(controlUrl),
])
parentPort?.postMessage({
  unansweredMs: Math.max(...checks.map(lengthOf)),
  causedMs: Math.max(
    ...checks.map((check) => lengthOf(check) - Math.max(check.cpuWaitMs, controlDelayDuring(check))),
  ),
  rssBefore,
  rssMax,
} satisfies HealthFigures)

async function checkUntilStopped(checkedUrl: string): Promise<readonly Check[]> {
  const done: Check[] = []
  while (!isStopping) {
    const startedMs = performance.now()
    const waitedMs = readCpuWaitMs()
    await check(checkedUrl)
    done.push({ startedMs, endedMs: performance.now(), cpuWaitMs: readCpuWaitMs() - waitedMs })
    rssMax = Math.max(rssMax, readRss())
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return done
}

function lengthOf({ startedMs, endedMs }: Check): number {
  return endedMs - startedMs
}

/** The longest check of the control server that was in progress at the same time. */
function controlDelayDuring({ startedMs, endedMs }: Check): number {
  const during = controls.filter((control) => control.startedMs < endedMs && control.endedMs > startedMs)
  return Math.max(0, ...during.map(lengthOf))
}

function check(checkedUrl: string): Promise<void> {
  return new Promise((resolve) => {
    const sent = request(checkedUrl, { agent: false, timeout: msMax }, (answer) => {
      answer.resume()
      answer.once('end', resolve)
    })
    sent.once('error', () => resolve())
    sent.once('timeout', () => sent.destroy())
    sent.end()
  })
}

/** How long the main thread of the server was ready to run, but had no CPU. Linux only. */
function readCpuWaitMs(): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

function readRss(): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024
  } catch {
    return 0
  }
}
