import { findKsuidProblem, ksuidLength, ksuidMax, ksuidMin } from '../../../core/ids/ksuid.ts'
import { Fault } from '../protocol/fault.ts'

/** Returns the contract's error if the text is not an item id. */
export function findIdFault(id: string): Fault | undefined {
  const problem = Buffer.byteLength(id) === ksuidLength ? findKsuidProblem(id) : 'length'
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
