import { type Static, Type } from 'typebox'
import { letterStatus } from '../../../ops/letter-status.ts'
import type { ListedState } from '../../../storage/contract/items.ts'

export const StatusCounts = Type.Object({
  PENDING: Type.Integer(),
  RETRYING: Type.Integer(),
  RESOLVED: Type.Integer(),
  DEAD: Type.Integer(),
  DISCARDED: Type.Integer(),
})

/** From counts by the states of the core. */
export function statusCounts(states: Readonly<Partial<Record<string, number>>>): Static<typeof StatusCounts> {
  const counts = { PENDING: 0, RETRYING: 0, RESOLVED: 0, DEAD: 0, DISCARDED: 0 }
  for (const [state, count = 0] of Object.entries(states)) counts[letterStatus(state as ListedState)] += count
  return counts
}
