/** Plans which waiting lease gets which items. The store then decides which items there are. */

export type Waiter = Readonly<{ clientId: string; countMax: number }>

/** Items of one partition for waiting leases: item number i goes to `recipients[i]`. */
export type Assignment<W extends Waiter> = Readonly<{ partition: number; recipients: readonly W[] }>

/**
 * Serves each waiter from one partition: the one with the most items that are not planned for others. With
 * more waiters than items, several waiters share a partition. The items of a partition go to its waiters in
 * turn, one item at a time.
 */
export function assignItems<W extends Waiter>(
  waiters: readonly W[],
  available: readonly number[],
  itemsMax: number,
): Assignment<W>[] {
  const unplanned = [...available]
  const byPartition = new Map<number, W[]>()
  for (const waiter of waiters) {
    const partition = pickPartition(unplanned, available)
    if (partition === undefined) break
    unplanned[partition] = (unplanned[partition] ?? 0) - waiter.countMax
    const sharing = byPartition.get(partition)
    if (sharing === undefined) byPartition.set(partition, [waiter])
    else sharing.push(waiter)
  }
  return [...byPartition].map(([partition, sharing]) => ({
    partition,
    recipients: takeTurns(sharing, itemsMax),
  }))
}

/** The non-empty partition with the most unplanned items; of several the one with the lowest number. */
function pickPartition(unplanned: readonly number[], available: readonly number[]): number | undefined {
  let best: number | undefined
  for (let partition = 0; partition < available.length; partition++) {
    if ((available[partition] ?? 0) <= 0) continue
    if (best === undefined || (unplanned[partition] ?? 0) > (unplanned[best] ?? 0)) best = partition
  }
  return best
}

function takeTurns<W extends Waiter>(waiters: readonly W[], itemsMax: number): W[] {
  const recipients: W[] = []
  for (let round = 0; recipients.length < itemsMax; round++) {
    const before = recipients.length
    for (const waiter of waiters) {
      if (round < waiter.countMax && recipients.length < itemsMax) recipients.push(waiter)
    }
    if (recipients.length === before) break
  }
  return recipients
}
