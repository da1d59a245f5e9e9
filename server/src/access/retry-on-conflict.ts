import { KnownError } from '../errors.ts'

/** More changes than this cannot win against one at the same time, except by a defect. */
const attemptsMax = 20

/** Repeats a change that was checked against an outdated version of the store. */
export async function retryOnConflict<T>(attempt: () => Promise<T>): Promise<T> {
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      const isConflict = error instanceof KnownError && error.code === 'ACCESS_CHANGED'
      if (!isConflict || number === attemptsMax) throw error
    }
  }
}
