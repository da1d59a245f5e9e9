/**
 * Decides whether what this server remembers about credentials is still true.
 *
 * The store has an epoch that grows with each change that can change what a credential allows. Memory of an
 * earlier epoch is not used. A server trusts the newest epoch that it read for `trustMs`, counted from the
 * start of the read; then it reads the epoch again before it answers. A server that changes the epoch waits
 * for `trustMs` after its commit before it reports success. So when a revocation has been answered, no server
 * accepts the revoked credential, even if servers cannot reach each other. A store with one server is trusted
 * without a limit, because this server makes all changes.
 */
export interface EpochWatch {
  readonly epoch: number
  /** Whether the epoch can be used without another read. Begins a read early, so that few requests wait. */
  isTrusted(): boolean
  /** Reads the epoch. Calls at the same time share one read. */
  check(): Promise<void>
  /** Reads the epoch with a read that begins after the call. */
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
  let checking: Promise<void> | undefined

  const note = (read: number, startedMs: number): void => {
    epoch = Math.max(epoch, read)
    checkedMs = Math.max(checkedMs, startedMs)
  }
  const check = (): Promise<void> => {
    const startedMs = nowMs()
    checking ??= readEpoch()
      .then((read) => note(read, startedMs))
      .finally(() => {
        checking = undefined
      })
    return checking
  }
  return {
    get epoch() {
      return epoch
    },
    isTrusted: () => {
      const ageMs = nowMs() - checkedMs
      // The request that needs the result reports a failure.
      if (ageMs >= trustMs / 2 && checking === undefined) check().catch(() => undefined)
      return ageMs < trustMs
    },
    check,
    refresh: async () => {
      await checking?.catch(() => undefined)
      await check()
    },
    note,
    now: nowMs,
  }
}
