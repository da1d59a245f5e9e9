import { usPerSecond } from '../core/time/instant.ts'
import type { Settings } from './settings/settings.ts'

const dayUs = 24 * 3_600 * usPerSecond

/** How long ended dead letters are kept, and how long they stay in the archive after that. */
export function toRetention(settings: Settings): Readonly<{ keepUs: number; archiveUs: number }> {
  return {
    keepUs: settings['letters.retention_days'] * dayUs,
    archiveUs: settings['letters.archive_retention_days'] * dayUs,
  }
}
