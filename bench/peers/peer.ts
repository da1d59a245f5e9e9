import { CannotRun } from '../cannot-run.ts'

/**
 * What the queue benchmark asks of each peer. All use up to `poolMax` connections to the same
 * PostgreSQL, or one connection per client object to Redis, as its users do.
 */
export const callersMax = 256
export const poolMax = 20

export type Opened = Readonly<{
  /** Resolves when `count` items are durably stored, by one call of the peer. */
  produce(count: number): Promise<void>
  consume: Consume | null
  close(): Promise<void>
}>

/**
 * `calls`: a caller asks for up to `batch` items, completes them, and says how many there were. `alsoWith`: numbers of
 * callers that suit the peer better than the usual one; the best counts.
 * `worker`: the peer calls a handler that does nothing, and nobody sees single calls.
 */
export type Consume =
  | Readonly<{
      kind: 'calls'
      call(caller: number, signal: AbortSignal): Promise<number>
      alsoWith?: readonly number[]
    }>
  | Readonly<{ kind: 'worker'; drain(items: number, msMax: number): Promise<Drained> }>
export type Drained = Readonly<{ items: number; seconds: number }>

export type Peer = Readonly<{
  name: string
  /** What is called for each figure; printed with the table. */
  calls: string
  /** With an empty store of its own. `batch` 1: one item per call. */
  open(batch: number): Promise<Opened>
}>

/** As JSON it is 300 bytes long. */
export const payload = { text: 'a'.repeat(300 - '{"text":""}'.length) } as const

/** `T` is the little we use of it, so that types can be checked where peers are not installed. */
export async function loadPeer<T>(packageName: string): Promise<T> {
  try {
    return (await import(packageName)) as T
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new CannotRun(`${packageName} is not installed: run "npm ci --prefix bench" first`)
  }
}

/** Resolves when `isDone` says so, or the time is up; says how long that took. */
export async function waitUntil(isDone: () => boolean | Promise<boolean>, msMax: number): Promise<number> {
  const startedAt = performance.now()
  const passedMs = () => performance.now() - startedAt
  while (passedMs() < msMax && !(await isDone())) await new Promise((resolve) => setTimeout(resolve, 2))
  return passedMs() / 1000
}
