/** The settings of webhook delivery. Names of other programs with the same API are in brackets. */
import { parseDuration } from '../core/time/duration.ts'
import { boolean, duration, integer, list, string } from './settings/setting-kinds.ts'

export const deliverySettings = {
  'webhooks.parallel_max': integer({
    default: 200,
    min: 1,
    max: 10_000,
    sentence: 'How many pushes to webhook consumers this server sends at the same time (max-workers).',
  }),
  'webhooks.queued_max': integer({
    default: 10_000,
    min: 100,
    max: 1_000_000,
    sentence: 'How many leased jobs may wait in memory for their push (max-message-queue-size).',
  }),
  'webhooks.timeout': duration({
    default: '30s',
    min: '100ms',
    max: '10m',
    sentence: 'How long a push may take, from the connection to the answer (connection-timeout-in-seconds).',
  }),
  'webhooks.retries_max': integer({
    default: 5,
    min: 0,
    max: 1_000,
    sentence: 'How often a failed push is repeated before its job is dead (max-retry).',
  }),
  'webhooks.retry_delays': list({
    default: ['5s', '30s', '1m'],
    isEntry: isDelay,
    allowed: 'durations such as 5s',
    sentence:
      'The delays before the first retries of a push; later delays grow by the last one (retry-backoff-delays-in-seconds).',
  }),
  'webhooks.rational_delay': duration({
    default: '2s',
    min: '100ms',
    max: '1h',
    sentence: 'How late background work on webhooks may be (rational-delay-in-seconds).',
  }),
  'webhooks.token_header_name': string({
    default: 'X-Broker-Consumer-Token',
    pattern: /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/,
    allowed: 'the name of a header',
    sentence: 'The header of a push that has the token of the consumer (token-header-name).',
  }),
  'webhooks.user_agent': string({
    default: 'Webhook Message Broker',
    sentence: 'The header User-Agent of pushes (user-agent).',
  }),
  'webhooks.allowed_targets': list({
    default: [],
    // The address rules check the entries completely when the server starts.
    isEntry: (text) => /^[\w.*:/-]+$/.test(text),
    allowed: 'host names or ranges of addresses',
    sentence:
      'Host names (hooks.internal, *.internal) and ranges of addresses (10.1.0.0/16) that pushes may go to although they are not public.',
  }),
  'webhooks.loopback_allowed': boolean({
    sentence: 'Whether pushes may go to this machine itself. Default: only in protected mode.',
  }),
  'webhooks.permanent_statuses': list({
    default: ['410'],
    isEntry: (text) => /^[345]\d\d$/.test(text),
    allowed: 'HTTP statuses from 300 to 599',
    sentence: 'Answers that no retry can change: they make a job dead at once.',
  }),
  'webhooks.retry_after_max': duration({
    default: '1h',
    min: '0s',
    max: '24h',
    sentence: 'The longest time that the Retry-After of a receiver can postpone the next attempt.',
  }),
  'webhooks.breaker_failures': integer({
    default: 100,
    min: 0,
    max: 1_000_000,
    sentence:
      'How many failures in a row make the server hold the jobs of a consumer. 0: jobs are never held.',
  }),
  'webhooks.breaker_hold': duration({
    default: '10s',
    min: '100ms',
    max: '1h',
    sentence:
      'How long the jobs of a failing consumer are held before a probe. Each failed probe doubles it.',
  }),
  'webhooks.breaker_hold_max': duration({
    default: '5m',
    min: '100ms',
    max: '24h',
    sentence: 'The longest time between two probes of a consumer whose jobs are held.',
  }),
  'webhooks.disable_after': duration({
    default: '120h',
    min: '0s',
    max: '8760h',
    sentence: 'A consumer is disabled after this time of nothing but failures. 0s: never.',
  }),
  'webhooks.attempt_retention': duration({
    default: '168h',
    min: '1m',
    max: '8760h',
    sentence: 'How long the attempts to push jobs are kept.',
  }),
} as const

function isDelay(text: string): boolean {
  try {
    return parseDuration(text) > 0
  } catch {
    return false
  }
}
