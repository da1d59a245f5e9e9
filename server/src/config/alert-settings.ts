/** The settings of alerts. */
import { alertRules, duration, string } from './settings/setting-kinds.ts'

export const alertSettings = {
  'alerts.check_interval': duration({
    default: '10s',
    min: '1s',
    max: '10m',
    sentence: 'How often the rules of alerts are checked.',
  }),
  'alerts.retention': duration({
    default: '720h',
    min: '1h',
    max: '87600h',
    sentence: 'How long alerts that ended stay in the history. At most the newest 100,000 are kept.',
  }),
  'alerts.rules': alertRules({
    sentence:
      'Rules of alerts, each with name, condition, severity and so on; see alerts.md. They cannot be changed through the API.',
  }),
  'alerts.public_url': string({
    sentence: 'The address of the dashboard for people, which notifications have as a link.',
    pattern: /^https?:\/\/[^\s@]+$/,
    allowed: 'an address such as https://redrive.example.com',
  }),
} as const
