/** Shared by queue.complete and queue.retry: errors of leased items in the contract's order and words. */
import type { Engine } from '../../../engine/engine.ts'
import { ItemRefused } from '../../../engine/writes/item-refused-error.ts'
import { KnownError } from '../../../errors.ts'
import { findIdFault } from '../checks/item-ids.ts'
import { findPartition } from '../checks/lookup.ts'
import { createBadRequest, Fault } from '../protocol/fault.ts'
import { tryAgain } from '../protocol/render-error.ts'

/** The leased items that a call settles. `verb` appears in the error message. */
export type Settlement = Readonly<{
  queueName: string
  partition: number
  ids: readonly string[]
  verb: 'completed' | 'retried'
}>

/**
 * Settles leased items with `work`, all or none. Translates a refusal into the contract's error for the first
 * id that cannot be settled.
 *
 * The contract checks the partition, and then form, existence and lease id by id, in order. Malformed ids
 * cannot be looked up in every store, so the partition and the ids before the first malformed id are checked
 * here.
 */
export async function settleItems(
  engine: Engine,
  settlement: Settlement,
  work: () => Promise<unknown>,
): Promise<void> {
  const { ids, verb } = settlement
  const malformed = ids.findIndex((id) => findIdFault(id) !== undefined)
  try {
    if (malformed >= 0) {
      await findPartition(engine, settlement.queueName, settlement.partition)
      await checkLeased(engine, settlement, ids.slice(0, malformed))
      throw findIdFault(ids[malformed] as string)
    }
    await work()
  } catch (error) {
    throw translateError(error, verb)
  }
}

async function checkLeased(
  engine: Engine,
  { queueName, partition, verb }: Settlement,
  ids: readonly string[],
): Promise<void> {
  const countMax = ids.length + 1
  const found = await engine.listItems({ queue: queueName, partition, ids, countMax, hasBytes: false })
  const isLeased = new Map(
    found
      .filter((item) => item.state === 'leased' || (item.state === 'waiting' && item.availableAt === null))
      .map((item) => [item.id, item.state === 'leased']),
  )
  for (const id of ids) {
    if (!isLeased.has(id)) throw createMissingItemFault(id)
    if (isLeased.get(id) === false) throw createNotLeasedFault(id, verb)
    // An id that is repeated no longer exists the second time.
    isLeased.delete(id)
  }
}

/**
 * Every failure of the store becomes 454, so that the client repeats the request. An unexpected error keeps
 * the code INTERNAL and is therefore logged completely.
 */
function translateError(error: unknown, verb: Settlement['verb']): KnownError {
  if (error instanceof ItemRefused) {
    const { code, itemId } = error
    if (code === 'ITEM_NOT_LEASED') return createNotLeasedFault(itemId, verb)
    return findIdFault(itemId) ?? createMissingItemFault(itemId)
  }
  if (!(error instanceof KnownError)) return new Fault(454, tryAgain, 'INTERNAL', error)
  if (error.status < 500 || error.code.endsWith('SHUTTING_DOWN')) return error
  return new Fault(454, tryAgain, error.code, error)
}

function createMissingItemFault(id: string): Fault {
  return createBadRequest(`invalid storage id; '${id}' does not exist`)
}

function createNotLeasedFault(id: string, verb: Settlement['verb']): Fault {
  return createBadRequest(`item(s) cannot be ${verb}; '${id}' is not marked as leased`)
}
