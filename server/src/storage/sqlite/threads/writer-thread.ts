/** The thread that owns the writing connection. Everything waiting when it gets to it becomes one commit. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { lockFile, openFile } from '../connection/database-file.ts'
import { dropOldBuckets } from '../counts/time-bucket-retention.ts'
import { reconcileCounts } from '../counts/verify.ts'
import { type Write, Writer } from '../write.ts'
import { BackgroundThrottle } from './background-throttle.ts'
import {
  type EncodedOutcome,
  encodeError,
  type OpenReport,
  pack,
  type Reply,
  type Request,
  type ThreadData,
  unpack,
} from './thread-messages.ts'
import { Checkpointer, changedLettersMax, WalState } from './wal.ts'

type WriteRequest = Request & { ask: 'write' }

const port = parentPort
if (port === null) throw new Error('the writer runs as a thread')
const { path, synchronous, log: shared } = workerData as ThreadData

try {
  const owned = lockFile(path)
  const database = openFile(path, synchronous)
  const log = new Checkpointer(database, new WalState(shared))
  // Whose clock it is stays with those who ask.
  let now = 0
  const writer = new Writer(database, Math.random, () => now)
  const say = (reply: Reply | OpenReport) => port.postMessage(reply)

  const answer = (request: Request): void => {
    if (request.ask === 'close') {
      try {
        database.exec('pragma wal_checkpoint(truncate)')
      } catch {
        // On a full disk the log stays beside the file, and is read when it is opened again.
      }
      database.close()
      owned.release()
      say({ call: request.call, value: pack(null) })
      port.close()
      return
    }
    try {
      if (request.ask === 'tidy') {
        dropOldBuckets(database, request.now)
        say({ call: request.call, value: pack(null) })
        return
      }
      if (request.ask !== 'reconcile') throw new Error(`the writer cannot ${request.ask}`)
      say({ call: request.call, value: pack(reconcileCounts(database, request.lock, request.now)) })
    } catch (error) {
      say({ call: request.call, error: encodeError(error) })
    }
  }

  const commit = (writes: readonly WriteRequest[]): void => {
    const calls = writes.map((write) => ({ call: write.call, units: unpack<readonly Write[]>(write.writes) }))
    now = Math.max(...writes.map((write) => write.now))
    const units = calls.flatMap((call) => call.units)
    const letters = units.flat().reduce((sum, command) => sum + changedLettersMax(command), 0)
    log.beforeCommit(letters, performance.now())
    const outcomes = writer.write(units)
    let at = 0
    for (const { call, units } of calls) {
      const sent = outcomes
        .slice(at, at + units.length)
        .map(
          (outcome): EncodedOutcome =>
            outcome.isOk ? { results: outcome.results } : { error: encodeError(outcome.error) },
        )
      at += units.length
      say({ call, value: pack(sent) })
    }
    log.checkpointIfLong()
  }

  const turns = new BackgroundThrottle<WriteRequest>()
  let timer: NodeJS.Timeout | undefined
  /** What stepped back, one at a time, as far as its turn has come. */
  const workOff = (): void => {
    clearTimeout(timer)
    const waitMs = turns.delayMs(performance.now())
    if (waitMs === undefined) return
    if (waitMs > 0) {
      timer = setTimeout(workOff, waitMs)
      return
    }
    const began = performance.now()
    commit([turns.take() as WriteRequest])
    const ended = performance.now()
    turns.noteBackgroundWrite(ended - began, ended)
    // Others first, should they have come meanwhile.
    timer = setTimeout(workOff, 0)
  }

  port.on('message', (first: Request) => {
    const writes: WriteRequest[] = []
    const others: Request[] = []
    for (let request: Request | undefined = first; request !== undefined; ) {
      if (request.ask === 'write' && request.isBackground) turns.add(request)
      else if (request.ask === 'write') writes.push(request)
      else others.push(request)
      request = receiveMessageOnPort(port)?.message as Request | undefined
    }
    if (writes.length > 0) {
      commit(writes)
      turns.noteForegroundWrite(performance.now())
    }
    for (const request of others) answer(request)
    workOff()
  })
  say({ isOpen: true })
} catch (error) {
  port.postMessage({ isOpen: false, error: encodeError(error) } satisfies OpenReport)
  port.close()
}
