/**
 * Bounds the memory of requests in progress. A body, an answer or an export within its own limit can hold
 * tens of megabytes, so only some of them are in progress at the same time. Others wait briefly, or are
 * answered with `SERVER_OVERLOADED` and `Retry-After`.
 */
import { KnownError } from '../../../errors.ts'

/** The kinds of answers that need memory until they are sent. */
export type AnswerKind = 'large' | 'export' | 'events'

/**
 * The number of answers in progress at the same time. PostgreSQL sends a payload of 16 MiB as 32 MiB of text,
 * so reading a large answer needs 100 MiB and more.
 */
export const answersMax: Readonly<Record<AnswerKind, number>> = { large: 3, export: 3, events: 500 }
/** Bytes of large bodies in progress at the same time. */
export const bodyBytesInProgressMax = 64_000_000
/** Smaller bodies are not counted. */
export const largeBodyBytes = 2 ** 20
/**
 * Large bodies that are read or handled at the same time. The values of a body can need twenty times the
 * memory of its bytes. The other bodies wait as bytes.
 */
export const bodiesReadMax = 2
/** Such a body is read and handled alone: 100,000 imported items need 200 MB. */
export const aloneBodyBytes = 4 * 2 ** 20

const waitMsMax = 10_000
const waitingMax = 200

/** Frees what was taken. A second call has no effect. */
export type Release = () => void

type Waiting = Readonly<{ units: number; start: (release: Release) => void }>

/** A number of units that requests share. */
export class Capacity {
  readonly #max: number
  readonly #waiting = new Set<Waiting>()
  #used = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Undefined if too few units are free. More units than there are can be taken if all are free. */
  tryTake(units = 1): Release | undefined {
    if (this.#used > 0 && this.#used + units > this.#max) return undefined
    return this.#take(units)
  }

  /** Waits in the order of arrival. Undefined if it takes too long, or too many wait. */
  async take(units = 1, msMax = waitMsMax): Promise<Release | undefined> {
    const free = this.#waiting.size === 0 ? this.tryTake(units) : undefined
    if (free !== undefined || this.#waiting.size >= waitingMax) return free
    return new Promise((resolve) => {
      const waiting: Waiting = {
        units,
        start: (release) => {
          clearTimeout(timer)
          resolve(release)
        },
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting)
        resolve(undefined)
      }, msMax)
      this.#waiting.add(waiting)
    })
  }

  #take(units: number): Release {
    this.#used += units
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.#used -= units
      this.#startWaiting()
    }
  }

  #startWaiting(): void {
    for (const waiting of this.#waiting) {
      const release = this.tryTake(waiting.units)
      if (release === undefined) return
      this.#waiting.delete(waiting)
      waiting.start(release)
    }
  }
}

export type Capacities = Readonly<{
  /** In bytes. */
  bodies: Capacity
  /** In bodies. */
  bodyReads: Capacity
  answers: Readonly<Record<AnswerKind, Capacity>>
}>

export function createCapacities(): Capacities {
  return {
    bodies: new Capacity(bodyBytesInProgressMax),
    bodyReads: new Capacity(bodiesReadMax),
    answers: {
      large: new Capacity(answersMax.large),
      export: new Capacity(answersMax.export),
      events: new Capacity(answersMax.events),
    },
  }
}

export function createOverloadedError(what: string): KnownError {
  return new KnownError('SERVER_OVERLOADED', `the server is overloaded: too many ${what} are in progress`)
}
