import type { Clock, Instant } from '../../../core/time/instant.ts'

/** The state of the connection to a cluster, for health and the API. */
export type ClusterState = Readonly<{
  status: 'connecting' | 'up' | 'down'
  /** Why the cluster is down; null: it is not. */
  reason: string | null
  changedAt: Instant
}>

export interface ClusterStateHolder {
  get(): ClusterState
  /** Returns whether the state changed. */
  set(status: ClusterState['status'], reason?: string): boolean
}

export function createClusterState(clock: Clock): ClusterStateHolder {
  let state: ClusterState = { status: 'connecting', reason: null, changedAt: clock.now() }
  return {
    get: () => state,
    set: (status, reason) => {
      const isChanged = state.status !== status || state.reason !== (reason ?? null)
      if (isChanged) state = { status, reason: reason ?? null, changedAt: clock.now() }
      return isChanged
    },
  }
}
