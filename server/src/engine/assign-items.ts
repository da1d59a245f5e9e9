/** Who gets what when several leases wait. Pure: it plans, the store decides what is really there. */

export type Waiter = Readonly<{ clientId: string; countMax: number }>

/** For one partition: item number i is for `turns[i]`. */
export type Hand<W extends Waiter> = Readonly<{ partition: number; turns: readonly W[] }>

/**
 * Each waiter is served from one partition: the one with the most items not yet spoken for. When there
 * are more waiters than items they share the partition that has them. Within a partition items are dealt
 * one at a time, in turn, to each waiter that is not yet full.
 */
export function deal<W extends Waiter>(
  waiters: readonly W[],
  available: readonly number[],
  turnsMax: number,
): Hand<W>[] {
  const unspoken = [...available]
  const byPartition = new Map<number, W[]>()
  for (const waiter of waiters) {
    const partition = fullest(unspoken, available)
    if (partition === undefined) break
    unspoken[partition] = (unspoken[partition] ?? 0) - waiter.countMax
    const seated = byPartition.get(partition)
    if (seated === undefined) byPartition.set(partition, [waiter])
    else seated.push(waiter)
  }
  return [...byPartition].map(([partition, seated]) => ({ partition, turns: inTurn(seated, turnsMax) }))
}

/** The partition with the most items left, lowest number first; when none is left, the one that had the most. */
function fullest(unspoken: readonly number[], available: readonly number[]): number | undefined {
  let best: number | undefined
  for (let partition = 0; partition < available.length; partition++) {
    if ((available[partition] ?? 0) <= 0) continue
    if (best === undefined || (unspoken[partition] ?? 0) > (unspoken[best] ?? 0)) best = partition
  }
  return best
}

function inTurn<W extends Waiter>(seated: readonly W[], turnsMax: number): W[] {
  const turns: W[] = []
  for (let round = 0; turns.length < turnsMax; round++) {
    const before = turns.length
    for (const waiter of seated) if (round < waiter.countMax && turns.length < turnsMax) turns.push(waiter)
    if (turns.length === before) break
  }
  return turns
}
