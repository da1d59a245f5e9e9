/** The settings of the webhook API. Names of other programs with the same API are in brackets. */
import { boolean, choice, duration, integer, list, secret } from './settings/setting-kinds.ts'

export const webhookSettings = {
  'webhooks.recovery_enabled': boolean({
    default: true,
    sentence:
      'Whether this server creates the jobs of messages that were left without them (recovery-workers-enabled).',
  }),
  'webhooks.schedule_interval': duration({
    default: '5s',
    min: '50ms',
    max: '1h',
    sentence: 'How often scheduled messages are dispatched (scheduler-interval-ms).',
  }),
  'webhooks.schedule_delay_min': duration({
    default: '2m',
    min: '0s',
    max: '24h',
    sentence: 'How far in the future a message must be scheduled at least (min-schedule-delay-minutes).',
  }),
  'webhooks.schedule_batch': integer({
    default: 100,
    min: 1,
    max: 10_000,
    sentence: 'How many scheduled messages are dispatched together (scheduler-batch-size).',
  }),
  'webhooks.gateway_auth': choice({
    choices: ['none', 'hmac'],
    default: 'none',
    sentence: 'hmac: requests to the webhook API must be signed by a gateway (gateway-auth).',
  }),
  'webhooks.gateway_secret': secret({
    sentence: 'The secret of the gateway in base64 (hmac-shared-secret).',
  }),
  'webhooks.gateway_tolerance': duration({
    default: '5m',
    min: '1s',
    max: '24h',
    sentence: 'How far the time of a signature may be from now (hmac-timestamp-tolerance-seconds).',
  }),
  'webhooks.gateway_exempt_paths': list({
    default: ['/_status', '/metrics', '/debug/pprof/'],
    sentence: 'Requests whose path starts with one of these need no signature (auth-exempt-paths).',
  }),
} as const
