import type { StoreHost } from '../../contract/hosts.ts'

/**
 * Chooses the host of new connections in a cluster: the current one until it cannot be used, then the next in
 * the order of the URL. All connections of a store share the choice, so one that found the new primary shows
 * it to the others.
 */
export class HostChoice {
  readonly #hosts: readonly StoreHost[]
  readonly #needsPrimary: boolean
  #index = 0
  #changes = 0

  /** `hosts` is empty if the driver reads the only host from the URL. */
  constructor(hosts: readonly StoreHost[], needsPrimary: boolean) {
    this.#hosts = hosts
    this.#needsPrimary = needsPrimary
  }

  get count(): number {
    return this.#hosts.length
  }

  /** Another host may have become the primary. */
  get mayHaveMoved(): boolean {
    return this.#needsPrimary && this.count > 1
  }

  /** False: a standby is as good as the primary. */
  get needsPrimary(): boolean {
    return this.#needsPrimary
  }

  /** Grows with each host that was given up. */
  get changes(): number {
    return this.#changes
  }

  get current(): StoreHost | undefined {
    return this.#hosts[this.#index]
  }

  /** The host cannot be used. Does nothing if another connection has noticed it before. */
  reject(host: StoreHost): void {
    if (this.#hosts.length < 2 || this.current !== host) return
    this.#index = (this.#index + 1) % this.#hosts.length
    this.#changes++
  }
}
