/**
 * Requests that wait or stream for a long time. They end when their credential expires, is revoked, or loses
 * a permission, so that a revoked key gets no item from a lease that waits, and no further event.
 */
import { KnownError } from '../../../errors.ts'

export type OpenRequest = Readonly<{
  /** Throws or rejects with the reason if the credential no longer allows the request. */
  check(): void | Promise<void>
  end(reason: KnownError): void
}>

export interface OpenRequests {
  /** Returns a function that removes the request. */
  add(request: OpenRequest): () => void
  /** Checks the requests, if a credential may have changed or expired since the last pass. */
  pass(): Promise<void>
}

export type OpenRequestsOptions = Readonly<{
  /** Rejects while the store cannot be read. */
  readEpoch(): number | Promise<number>
  intervalMs: number
  nowMs?: () => number
}>

/** Expiry changes no epoch, so all requests are checked this often. */
const expiryMs = 1_000

const refusals: readonly string[] = ['CREDENTIAL_REFUSED', 'CREDENTIAL_MISSING', 'ACCESS_DENIED']

export function createOpenRequests(options: OpenRequestsOptions): OpenRequests {
  const { readEpoch, intervalMs, nowMs = () => performance.now() } = options
  const open = new Set<OpenRequest>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let epochSeen = -1
  let checkedMs = nowMs()

  const check = async (request: OpenRequest): Promise<void> => {
    try {
      await request.check()
    } catch (error) {
      // Nothing can be concluded while the store cannot be read; the server then has nothing to send either.
      if (!(error instanceof KnownError) || !refusals.includes(error.code)) return
      if (open.delete(request)) request.end(error)
    }
  }
  const run = async (): Promise<void> => {
    const epoch = await readEpoch()
    if (epoch === epochSeen && nowMs() - checkedMs < expiryMs) return
    checkedMs = nowMs()
    for (const request of [...open]) await check(request)
    epochSeen = epoch
  }
  const pass = (): Promise<void> => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
  const tick = (): void => {
    if (open.size > 0) {
      pass().catch(() => undefined)
      return
    }
    clearInterval(timer)
    timer = undefined
  }
  return {
    add: (request) => {
      open.add(request)
      // Not stopped at once if the set is empty: most requests that wait are followed by another one.
      timer ??= setInterval(tick, intervalMs).unref()
      return () => void open.delete(request)
    },
    pass,
  }
}
