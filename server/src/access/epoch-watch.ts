/**
 * Decides whether what this server remembers about credentials is still true.
 *
 * The store has an epoch that grows with each change that can change what a credential allows. Memory of an
 * earlier epoch is not used. A server trusts the newest epoch that it read for `trustMs`, counted from the
 * start of the read; then it reads the epoch again before it answers. A server that changes the epoch waits
 * for `trustMs` after its commit before it reports success. So when a revocation has been answered, no server
 * accepts the revoked credential, even if servers cannot reach each other. A server that is cut off from the
 * store accepts nothing after `trustMs`. A store with one server is trusted without a limit, because this
 * server makes all changes.
 */
export interface EpochWatch {
  readonly epoch: number
  /** Whether the epoch can be used without another read. Begins a read early, so that few requests wait. */
  isTrusted(): boolean
  /**
   * Resolves when the epoch can be used for a request that arrived before the call: it is trusted, or its
   * read began after the call. Calls at the same time share a read.
   */
  check(): Promise<void>
  /** Trusts only reads that begin after the call, and does one. */
  refresh(): Promise<void>
  /** Records an epoch that was read with other data. `startedMs`: when that read began. */
  note(epoch: number, startedMs: number): void
  now(): number
}

export type EpochWatchOptions = Readonly<{
  readEpoch(): Promise<number>
  /** Infinity: no other server changes the store. */
  trustMs: number
  nowMs(): number
}>

export function createEpochWatch({ readEpoch, trustMs, nowMs }: EpochWatchOptions): EpochWatch {
  let epoch = -1
  let checkedMs = Number.NEGATIVE_INFINITY
  /** Reads that began earlier prove nothing: they may not have seen a change of this server. */
  let changedMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const note = (read: number, startedMs: number): void => {
    epoch = Math.max(epoch, read)
    if (startedMs >= changedMs) checkedMs = Math.max(checkedMs, startedMs)
  }
  const read = (): Promise<void> => {
    if (reading !== undefined) return reading
    const startedMs = nowMs()
    reading = readEpoch()
      .then((found) => note(found, startedMs))
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  const isFresh = (): boolean => nowMs() - checkedMs < trustMs
  return {
    get epoch() {
      return epoch
    },
    isTrusted: () => {
      const ageMs = nowMs() - checkedMs
      // The request that needs the result reports a failure.
      if (ageMs >= trustMs / 2 && reading === undefined) read().catch(() => undefined)
      return ageMs < trustMs
    },
    check: async () => {
      const calledMs = nowMs()
      await read()
      // The answer to a read that had begun before may have been delayed for longer than it can be trusted,
      // while a credential was revoked.
      if (!isFresh() && checkedMs < calledMs) await read()
    },
    refresh: async () => {
      changedMs = nowMs()
      checkedMs = Number.NEGATIVE_INFINITY
      await reading?.catch(() => undefined)
      await read()
    },
    note,
    now: nowMs,
  }
}

/**
 * Milliseconds that only go forward, also while the machine is suspended: the monotonic clock then stands
 * still, and the clock of the machine is ahead of it afterwards.
 */
export function createPassedMs(
  monotonicMs: () => number = () => performance.now(),
  machineMs: () => number = () => Date.now(),
): () => number {
  let aheadMs = Number.NEGATIVE_INFINITY
  return () => {
    const monotonic = monotonicMs()
    aheadMs = Math.max(aheadMs, machineMs() - monotonic)
    return monotonic + aheadMs
  }
}
