/**
 * Keeps something leased usable: Vault's login tokens and the database credentials it makes.
 *
 * A lease is renewed at two thirds of its time. Vault renews up to a maximum only; it says so by granting
 * less than at first, or by refusing. From then on the lease cannot be saved, and another one is taken
 * while the old one still has a third of its time, so that whoever uses it can change over. While Vault
 * cannot be reached it is asked again and again, and what is leased stays in use to its end.
 */
import type { Timers } from './timers.ts'

export type Grant<T> = Readonly<{
  value: T
  /** Infinity: it never ends. */
  leaseMs: number
  isRenewable: boolean
}>

export type LeaseSource<T> = Readonly<{
  acquire(): Promise<Grant<T>>
  renew(grant: Grant<T>): Promise<Grant<T>>
  /** Whether the same request may succeed later. Otherwise renewing is given up. */
  isTemporary(error: unknown): boolean
  isSame(one: T, other: T): boolean
  /** Whether it will end with something else, before its own time: then another one is taken at once. */
  isDoomed?(value: T): boolean
  /** No lease could be taken or renewed. `isUsable`: whether there is one to go on with. */
  onTrouble(error: unknown, isUsable: boolean): void
  /** Renewing was refused, as it is at a maximum; another lease is being taken. */
  onNotRenewed(error: unknown): void
}>

export interface LeaseKeeper<T> {
  /** What is leased now. Takes a lease if there is none that holds, and throws if none can be had. */
  current(): Promise<T>
  /** Says that what is leased does not work any more, whatever its lease says, if it is this one. */
  rejected(isThisOne: (value: T) => boolean): void
  /** What is leased now, if anything is. */
  peek(): T | undefined
  /** Looks at once whether something is due, because `isDoomed` may have changed. */
  wake(): void
  onReplaced(listener: (value: T) => void): () => void
  /** Does what is due now. */
  pass(): Promise<void>
  /** Ends the renewing. Returns what is still leased. */
  close(): Promise<T | undefined>
}

type Held<T> = Readonly<{
  grant: Grant<T>
  /** As granted at first: a renewal for less means that the maximum is near. */
  fullLeaseMs: number
  endsAtMs: number
  dueAtMs: number
  isFinal: boolean
}>

const restMsMin = 100
const restMsMax = 3_600_000
const backoffMsMin = 1_000
const backoffMsMax = 30_000
/** A store that refuses everybody must not make a lease per refusal. */
const rejectionEveryMs = 10_000

export function createLeaseKeeper<T>(source: LeaseSource<T>, timers: Timers): LeaseKeeper<T> {
  const listeners = new Set<(value: T) => void>()
  let held: Held<T> | undefined
  let acquiredAtMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let isClosed = false
  let running: Promise<void> | undefined
  let cancelTimer = (): void => {}

  const isUsable = (): boolean => held !== undefined && timers.nowMs() < held.endsAtMs
  const isDoomed = (): boolean => held !== undefined && source.isDoomed?.(held.grant.value) === true

  const acquire = async (): Promise<void> => {
    const askedAtMs = timers.nowMs()
    const grant = await source.acquire()
    const previous = held?.grant.value
    held = holdFrom(grant, grant.leaseMs, askedAtMs)
    acquiredAtMs = askedAtMs
    if (previous !== undefined && !source.isSame(previous, grant.value)) {
      for (const listener of listeners) listener(grant.value)
    }
  }

  const renew = async (present: Held<T>): Promise<void> => {
    const askedAtMs = timers.nowMs()
    const grant = await source.renew(present.grant)
    const renewed = holdFrom(grant, present.fullLeaseMs, askedAtMs)
    // Less than half of a lease is left for good: renewing it further would only come nearer to its end.
    const isSpent = grant.leaseMs < present.fullLeaseMs / 2 || renewed.endsAtMs <= present.endsAtMs
    held = { ...renewed, isFinal: renewed.isFinal || isSpent }
    if (isSpent) await acquire()
  }

  const renewOrReplace = async (present: Held<T>): Promise<void> => {
    if (present.isFinal) return acquire()
    try {
      await renew(present)
    } catch (error) {
      if (source.isTemporary(error)) throw error
      source.onNotRenewed(error)
      held = held && { ...held, isFinal: true }
      await acquire()
    }
  }

  const doWhatIsDue = async (): Promise<void> => {
    try {
      if (held === undefined || !isUsable() || isDoomed()) await acquire()
      else if (timers.nowMs() >= held.dueAtMs) await renewOrReplace(held)
      failures = 0
    } catch (error) {
      failures += 1
      source.onTrouble(error, isUsable())
      throw error
    }
  }

  const restMs = (): number => {
    const nowMs = timers.nowMs()
    const dueAtMs = isDoomed() ? nowMs : (held?.dueAtMs ?? nowMs)
    if (failures === 0) return clamp(dueAtMs - nowMs, restMsMin, restMsMax)
    const backoffMs = Math.min(backoffMsMin * 2 ** Math.min(failures - 1, 20), backoffMsMax)
    // Several tries before the end, however short the lease is.
    return isUsable() ? clamp(((held?.endsAtMs ?? nowMs) - nowMs) / 4, restMsMin, backoffMs) : backoffMs
  }

  /** One at a time; whoever comes meanwhile gets the outcome of the one that runs. */
  const run = (): Promise<void> => {
    running ??= doWhatIsDue().finally(() => {
      running = undefined
      schedule(restMs())
    })
    return running
  }

  const schedule = (waitMs: number): void => {
    cancelTimer()
    if (!isClosed) cancelTimer = timers.after(waitMs, () => run().catch(ignoreReported))
  }

  return {
    current: async () => {
      if (!isUsable()) {
        if (isClosed) throw new Error('the lease was given back')
        await run()
      }
      if (held === undefined) throw new Error('nothing is leased')
      return held.grant.value
    },
    rejected: (isThisOne) => {
      const isPresent = held !== undefined && isThisOne(held.grant.value)
      if (!isPresent || timers.nowMs() - acquiredAtMs < rejectionEveryMs) return
      held = held && { ...held, endsAtMs: timers.nowMs(), isFinal: true }
    },
    peek: () => held?.grant.value,
    wake: () => {
      // A pass under way looks for itself when it is done.
      if (running === undefined && held !== undefined) schedule(0)
    },
    onReplaced: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    pass: run,
    close: async () => {
      isClosed = true
      cancelTimer()
      await running?.catch(ignoreReported)
      const value = isUsable() ? held?.grant.value : undefined
      held = undefined
      return value
    },
  }
}

function holdFrom<T>(grant: Grant<T>, fullLeaseMs: number, askedAtMs: number): Held<T> {
  return {
    grant,
    fullLeaseMs,
    // Counted from the question, not the answer: Vault's time started before the answer arrived.
    endsAtMs: askedAtMs + grant.leaseMs,
    dueAtMs: askedAtMs + (grant.leaseMs * 2) / 3,
    // A little less may be rounding; more means that the maximum is near.
    isFinal: !grant.isRenewable || grant.leaseMs < fullLeaseMs * 0.95,
  }
}

/** `onTrouble` has told it. */
function ignoreReported(): void {}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max)
}
