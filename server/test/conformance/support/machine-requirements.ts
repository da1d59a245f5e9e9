/** Requirements on the machine besides services. Tests without them are skipped with a reason. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Required } from '../../../../tools/services/require-service.ts'

/** The reason why a command cannot run here; undefined if it can. */
export async function findObstacle(command: string, args: readonly string[]): Promise<string | undefined> {
  try {
    await promisify(execFile)(command, args)
    return undefined
  } catch (error) {
    const message = error instanceof Error ? error.message.trim().replace(/\s+/g, ' ') : String(error)
    return `${command} cannot be used here: ${message}`
  }
}

/** Makes a requirement for `needs`. */
export function requirement(service: string, reason: string | undefined): Required<object> {
  return { service, missing: reason === undefined ? undefined : { isFound: false, reason } }
}
