export type QueueStats = Readonly<{
  name: string
  /** Requests that wait for execution. */
  produceWaiting: number
  completeWaiting: number
  /** Lease calls that wait for items. */
  leaseWaiting: number
  inFlight: number
  partitions: readonly PartitionStats[]
}>

export type PartitionStats = Readonly<{
  partition: number
  /** Waiting and leased items, without scheduled items. */
  total: number
  leased: number
  scheduled: number
  /** 0 for a healthy partition. */
  failures: number
  /** Durations as text, such as `1m30s`. */
  averageAge: string
  averageLeasedAge: string
}>

export type WireStats = Readonly<{
  queue_name?: string
  logicalQueues?: readonly Readonly<{
    produce_waiting?: number
    lease_waiting?: number
    complete_waiting?: number
    in_flight?: number
    partitions?: readonly Readonly<{
      partition?: number
      total?: number
      total_leased?: number
      failures?: number
      average_age?: string
      average_leased_age?: string
      scheduled?: number
    }>[]
  }>[]
}>

export function fromWireStats(wire: WireStats): QueueStats {
  const logical = wire.logicalQueues?.[0] ?? {}
  return {
    name: wire.queue_name ?? '',
    produceWaiting: logical.produce_waiting ?? 0,
    completeWaiting: logical.complete_waiting ?? 0,
    leaseWaiting: logical.lease_waiting ?? 0,
    inFlight: logical.in_flight ?? 0,
    partitions: (logical.partitions ?? []).map((partition) => ({
      partition: partition.partition ?? 0,
      total: partition.total ?? 0,
      leased: partition.total_leased ?? 0,
      scheduled: partition.scheduled ?? 0,
      failures: partition.failures ?? 0,
      averageAge: partition.average_age ?? '0s',
      averageLeasedAge: partition.average_leased_age ?? '0s',
    })),
  }
}
