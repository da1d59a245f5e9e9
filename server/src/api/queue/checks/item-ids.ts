import { ksuidLength, ksuidMax, ksuidMin, ksuidProblem } from '../../../core/ksuid.ts'
import type { Engine } from '../../../engine/engine.ts'
import { ItemRefused } from '../../../engine/item-refused-error.ts'
import { Fault, badRequest } from '../protocol/fault.ts'

/** The contract's words for an id that is not one, or undefined. */
export function findIdFault(id: string): Fault | undefined {
  const problem = Buffer.byteLength(id) === ksuidLength ? ksuidProblem(id) : 'length'
  if (problem === undefined) return undefined
  const why =
    problem === 'length'
      ? `Valid encoded KSUIDs are ${ksuidLength} characters`
      : `Valid encoded KSUIDs are bounded by ${ksuidMin} and ${ksuidMax}`
  return new Fault(400, `invalid storage id; '${id}': ${why}`, 'ITEM_ID_INVALID')
}

export function checkIds(ids: readonly string[]): void {
  for (const id of ids) {
    const fault = findIdFault(id)
    if (fault !== undefined) throw fault
  }
}

type Settling = Readonly<{ queueName: string; partition: number }>

/**
 * Settles leased items all or none, and names the first id that stands in the way.
 *
 * The contract checks form, existence and lease id by id. Ids that are none cannot be looked for in
 * every store, so what stands before the first of them is looked at here.
 */
export async function settleItems<T>(
  engine: Engine,
  { queueName, partition }: Settling,
  ids: readonly string[],
  settled: 'completed' | 'retried',
  work: () => Promise<T>,
): Promise<T> {
  const notLeased = (id: string) => badRequest(`item(s) cannot be ${settled}; '${id}' is not marked as leased`)
  for (const [index, id] of ids.entries()) {
    const fault = findIdFault(id)
    if (fault === undefined) continue
    const before = ids.slice(0, index)
    const found = await engine.listItems({
      queue: queueName,
      partition,
      ids: before,
      countMax: before.length + 1,
    })
    const isLeased = new Map(
      found
        .filter((item) => item.state === 'leased' || (item.state === 'waiting' && item.availableAt === null))
        .map((item) => [item.id, item.state === 'leased']),
    )
    for (const earlier of before) {
      if (!isLeased.has(earlier)) throw missingItemFault(earlier)
      if (isLeased.get(earlier) === false) throw notLeased(earlier)
      // The second time it would be gone.
      isLeased.delete(earlier)
    }
    throw fault
  }
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ItemRefused)) throw error
    const id = error.itemId
    if (error.code === 'ITEM_NOT_LEASED') throw notLeased(id)
    throw findIdFault(id) ?? missingItemFault(id)
  }
}

function missingItemFault(id: string): Fault {
  return badRequest(`invalid storage id; '${id}' does not exist`)
}
