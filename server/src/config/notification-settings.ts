/** The settings of channels and notifications. */
import { alertChannels, duration } from './settings/setting-kinds.ts'

export const notificationSettings = {
  'alerts.channels': alertChannels({
    sentence:
      'Channels of alerts, each with name, kind and the fields of its kind; see alerts.md. They cannot be changed through the API.',
  }),
  'alerts.send_timeout': duration({
    default: '10s',
    min: '100ms',
    max: '20s',
    sentence: 'How long a service may take to answer a notification.',
  }),
  'alerts.give_up_after': duration({
    default: '24h',
    min: '1m',
    max: '720h',
    sentence:
      'How long the server tries to deliver a notification, before it is a dead letter of the queue _alerts.dead.',
  }),
} as const
