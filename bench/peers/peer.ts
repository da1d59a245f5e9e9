import { UnmetRequirement } from '../unmet-requirement.ts'

/**
 * The interface of the queue benchmark to each peer. All peers use up to `poolMax` connections to the same
 * PostgreSQL, or one connection per client object to Redis, as is usual.
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
 * - `calls`: a caller leases up to `batch` items, completes them, and resolves with their number. `alsoWith`:
 *   numbers of callers that suit the peer better than the default; the best counts.
 * - `worker`: the peer calls an empty handler, and single calls cannot be observed.
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
  /** The calls behind each figure; printed with the table. */
  calls: string
  /** Opens the peer with an empty store. `batch` 1: one item per call. */
  open(batch: number): Promise<Opened>
}>

/** 300 bytes as JSON. */
export const payload = { text: 'a'.repeat(300 - '{"text":""}'.length) } as const

/** `T` declares the used part of the package, so that types can be checked without the peers installed. */
export async function loadPeer<T>(packageName: string): Promise<T> {
  try {
    return (await import(packageName)) as T
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new UnmetRequirement(`${packageName} is not installed: run "npm ci --prefix bench" first`)
  }
}

/** Resolves when `isDone` returns true or `msMax` has passed, with the elapsed seconds. */
export async function waitUntil(isDone: () => boolean | Promise<boolean>, msMax: number): Promise<number> {
  const startedAt = performance.now()
  const passedMs = () => performance.now() - startedAt
  while (passedMs() < msMax && !(await isDone())) await new Promise((resolve) => setTimeout(resolve, 2))
  return passedMs() / 1000
}
