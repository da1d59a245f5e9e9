/** The settings of the webhook API. Names of other programs with the same API are in brackets. */
import {
  boolean,
  choice,
  duration,
  integer,
  list,
  secret,
  string,
  webhookConsumers,
  webhookEntities,
} from './settings/setting-kinds.ts'

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
  'webhooks.producers': webhookEntities({
    name: 'webhooks.producers',
    sentence:
      'Producers that are created or overwritten at start when the list changed, each with id, name and token; see webhooks.md.',
  }),
  'webhooks.channels': webhookEntities({
    name: 'webhooks.channels',
    sentence: 'Channels that are created or overwritten at start when the list changed; see webhooks.md.',
  }),
  'webhooks.consumers': webhookConsumers({
    name: 'webhooks.consumers',
    sentence:
      'Consumers that are created or overwritten at start when the list changed, each with channel, id, name, token, callback_url and type; see webhooks.md.',
  }),
  'webhooks.message_retention_days': integer({
    default: 0,
    min: 0,
    max: 36_500,
    sentence:
      'Messages whose jobs are all delivered are exported and removed after this number of days. 0: they are kept (message-retention-days).',
  }),
  'webhooks.export_node_name': string({
    pattern: /^[A-Za-z0-9._-]{1,64}$/,
    allowed: '1 to 64 letters, digits, ".", "_" or "-"',
    sentence:
      'The name of this server in the names of exported files, different for each server. Not set: this server prunes no messages (export-node-name).',
  }),
  'webhooks.export_path': string({
    sentence: 'The folder of the files with exported messages (export-path).',
  }),
  'webhooks.export_file_mb_max': integer({
    default: 100,
    min: 1,
    max: 100_000,
    sentence:
      'A file with exported messages is ended when it reaches this number of MiB (max-archive-file-size-in-mb).',
  }),
  'webhooks.prune_interval': duration({
    default: '10m',
    min: '1s',
    max: '24h',
    sentence: 'How often messages are exported and removed.',
  }),
} as const
