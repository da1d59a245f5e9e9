/** The pruning of messages that the settings ask for. */
import { usPerSecond } from '../core/time/instant.ts'
import { KnownError } from '../errors.ts'
import type { Settings } from './settings/settings.ts'

const dayUs = 24 * 3_600 * usPerSecond
const bytesPerMb = 1_024 * 1_024

/** Empty: messages are kept. Throws SETTING_INVALID if they are to be removed, but not exported anywhere. */
export function toPruning(settings: Settings) {
  const days = settings['webhooks.message_retention_days']
  const nodeName = settings['webhooks.export_node_name']
  const folder = settings['webhooks.export_path']
  if (days === 0 || nodeName === undefined) return {}
  if (folder === undefined) {
    throw new KnownError(
      'SETTING_INVALID',
      'webhooks.export_node_name and webhooks.message_retention_days are set, but webhooks.export_path is not',
    )
  }
  return {
    pruning: {
      nodeName,
      folder,
      fileBytesMax: settings['webhooks.export_file_mb_max'] * bytesPerMb,
      retentionUs: days * dayUs,
      intervalMs: settings['webhooks.prune_interval'],
    },
  }
}
