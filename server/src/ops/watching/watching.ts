/**
 * The watch over workers and consumer groups. Findings are computed from the store, so all
 * servers on a store have the same.
 */
import type { Finding } from '../../core/watching/findings.ts'

export interface Watching {
  /**
   * Everything that is not as it should be now, the worst first, at most `findingsMax`. A finding is
   * identified by its rule, namespace and subject, and ends when it is no longer in the list.
   */
  readFindings(): Promise<readonly Finding[]>
}

export const findingsMax = 1_000
