/** Checks what a test needs from the machine besides services. Tests without it are skipped with a reason. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Required } from '../../../../tools/services/require-service.ts'

/** Why a command cannot be run here, or undefined when it can. */
export async function findObstacle(command: string, args: readonly string[]): Promise<string | undefined> {
  try {
    await promisify(execFile)(command, args)
    return undefined
  } catch (error) {
    const said = error instanceof Error ? error.message.trim().replace(/\s+/g, ' ') : String(error)
    return `${command} cannot be used here: ${said}`
  }
}

/** For `needs`. */
export function requirement(service: string, reason: string | undefined): Required<object> {
  return { service, missing: reason === undefined ? undefined : { isFound: false, reason } }
}
