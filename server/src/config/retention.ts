import { usPerSecond } from '../core/instant.ts'
import type { Settings } from './settings.ts'

const dayUs = 24 * 3_600 * usPerSecond

/** How long dead letters that ended are kept, and how long in the archive after that. */
export function retentionOf(settings: Settings): Readonly<{ keepUs: number; archiveUs: number }> {
  return {
    keepUs: settings['letters.retention_days'] * dayUs,
    archiveUs: settings['letters.archive_days'] * dayUs,
  }
}
