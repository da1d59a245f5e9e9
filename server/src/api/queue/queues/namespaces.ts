import { systemNamespace } from '../../../core/queue.ts'
import { Fault } from '../protocol/fault.ts'

export function readNamespace(given: string): string {
  return given === '' ? systemNamespace : given
}

/** The system's namespace is the only one there is. */
export function checkNamespaceExists(name: string): void {
  if (name === systemNamespace) return
  throw new Fault(453, `namespace does not exist; '${name}' was not found`, 'NOT_FOUND')
}
