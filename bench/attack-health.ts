/**
 * Asks /healthz every 20 ms and reads the memory of the server, in a thread of its own: sending a large body
 * would delay the checks.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

export type HealthTarget = Readonly<{ url: string; pid: number }>
export type HealthFigures = Readonly<{ unansweredMs: number; rssBefore: number; rssMax: number }>

const msMax = 60_000
const { url, pid } = workerData as HealthTarget
const rssBefore = readRss()
let unansweredMs = 0
let rssMax = 0
let isStopping = false

parentPort?.once('message', () => {
  isStopping = true
})
while (!isStopping) {
  const startedMs = performance.now()
  await check()
  unansweredMs = Math.max(unansweredMs, performance.now() - startedMs)
  rssMax = Math.max(rssMax, readRss())
  await new Promise((resolve) => setTimeout(resolve, 20))
}
parentPort?.postMessage({ unansweredMs, rssBefore, rssMax } satisfies HealthFigures)

function check(): Promise<void> {
  return new Promise((resolve) => {
    const sent = request(`${url}/healthz`, { agent: false, timeout: msMax }, (answer) => {
      answer.resume()
      answer.once('end', resolve)
    })
    sent.once('error', () => resolve())
    sent.once('timeout', () => sent.destroy())
    sent.end()
  })
}

function readRss(): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024
  } catch {
    return 0
  }
}
