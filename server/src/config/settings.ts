import type { Setting } from './setting-kinds.ts'
import { boolean, bytes, choice, duration, integer, secret, string } from './setting-kinds.ts'
import { maskStore } from './store-text.ts'

/**
 * Every setting there is. A name here is the name in redrive.yaml; the flag and the environment variable
 * follow from it (`log.level`: `--log-level`, `REDRIVE_LOG_LEVEL`).
 *
 * In code a duration is whole milliseconds and a size is whole bytes.
 */
export const settingsTable = {
  config: string({
    sentence: 'The settings file; without it, redrive.yaml in the working folder if there is one.',
  }),
  host: string({ default: '127.0.0.1', sentence: 'The address to listen on.' }),
  port: integer({
    default: 8080,
    min: 0,
    max: 65_535,
    sentence: 'The port to listen on; 0 takes any free one.',
  }),
  store: string({
    default: 'data/redrive.db',
    sentence:
      'Where items live: a path or sqlite:<path> for a SQLite file, :memory: for nothing kept, or postgres://user@host:5432/database.',
    format: maskStore,
  }),

  'store.password': secret({
    sentence: 'The password for the PostgreSQL store; read again when the database refuses it.',
  }),
  'store.credentials': string({
    sentence:
      'Where user and password for the PostgreSQL store are leased from: vault:database/creds/<role>.',
    pattern: /^vault:[^#\s]+\/creds\/[^/#\s]+$/,
    allowed: 'vault:<mount>/creds/<role>',
  }),
  'store.retry_backoff_max': duration({
    default: '30s',
    min: '100ms',
    max: '10m',
    sentence: 'The longest wait between two tries to reach a store that does not answer.',
  }),

  'sqlite.synchronous': choice({
    choices: ['full', 'normal-may-lose-last-commits'],
    default: 'full',
    sentence:
      'full puts every commit on disk before it is answered; normal-may-lose-last-commits is faster, and a power failure may lose what was already answered.',
  }),

  'postgres.pool_max': integer({
    default: 10,
    min: 2,
    max: 1_000,
    sentence: 'The most connections this server opens to PostgreSQL.',
  }),
  'postgres.connect_timeout': duration({
    default: '5s',
    min: '100ms',
    max: '5m',
    sentence: 'How long opening a connection to PostgreSQL may take.',
  }),

  'http.body_bytes_max': bytes({
    default: '64MB',
    min: '1KiB',
    max: '1GiB',
    sentence: 'The largest request body; single paths may allow less.',
  }),
  'http.header_bytes_max': bytes({
    default: '16KiB',
    min: '1KiB',
    max: '1MiB',
    sentence: 'The most bytes all headers of a request may have together.',
  }),
  'http.request_timeout': duration({
    default: '60s',
    min: '1s',
    max: '1h',
    sentence: 'How long a client may take to send a request, headers and body.',
  }),
  'http.keep_alive_timeout': duration({
    default: '125s',
    min: '120s',
    max: '1h',
    sentence: 'How long an idle connection stays open.',
  }),
  'http.connections_max': integer({
    default: 1_000,
    min: 1,
    max: 1_000_000,
    sentence: 'The most connections open at once; further ones are closed at once.',
  }),

  'log.level': choice({
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    sentence: 'The least important kind of line that is logged.',
  }),
  'log.format': choice({
    choices: ['auto', 'json', 'pretty'],
    default: 'auto',
    sentence: 'How lines are logged; auto is pretty on a terminal and json elsewhere.',
  }),

  'counts.reconcile_interval': duration({
    default: '10m',
    min: '1s',
    max: '24h',
    sentence: 'How often the counts are checked against the rows they count.',
  }),

  'stop.grace': duration({
    default: '25s',
    min: '0s',
    max: '1h',
    sentence: 'How long requests under way may take to finish when the server is asked to stop.',
  }),

  'queue.requests_max': integer({
    default: 100,
    min: 1,
    max: 1_000_000,
    sentence: 'The most requests of one queue that may wait to be written; further ones are refused.',
  }),
  'queue.store_timeout': duration({
    default: '3s',
    min: '100ms',
    max: '1m',
    sentence:
      'How long the store may take for a batch of requests, for making or changing a queue, for a step of an import, or for a read, before those who wait are told to repeat.',
  }),
  'queue.produce_items_max': integer({
    default: 1_000,
    min: 1,
    max: 65_536,
    sentence: 'The most items that may be produced in one call of the Queue API.',
  }),
  'queue.lease_items_max': integer({
    default: 1_000,
    min: 1,
    max: 65_536,
    sentence: 'The most items that may be leased in one call of the Queue API.',
  }),
  'queue.complete_items_max': integer({
    default: 1_000,
    min: 1,
    max: 65_536,
    sentence: 'The most items that may be completed or retried in one call of the Queue API.',
  }),

  'dlq.page_size_default': integer({
    default: 25,
    min: 1,
    max: 100,
    variable: 'DLQ_PAGE_SIZE_DEFAULT',
    sentence: 'How many dead letters a page of GET /api/v1/dlq has, unless page_size says.',
  }),
  'dlq.page_size_max': integer({
    default: 100,
    min: 1,
    max: 500,
    variable: 'DLQ_PAGE_SIZE_MAX',
    sentence: 'The largest page_size of GET /api/v1/dlq; a larger default counts as this.',
  }),
  'dlq.requeue_limit': integer({
    default: 500,
    min: 1,
    max: 1_000,
    variable: 'DLQ_REQUEUE_LIMIT',
    sentence: 'The most ids in one call of POST /api/v1/dlq/requeue.',
  }),
  'dlq.purge_limit': integer({
    default: 1_000,
    min: 1,
    max: 5_000,
    variable: 'DLQ_PURGE_LIMIT',
    sentence: 'The most ids or matches that one call of POST /api/v1/dlq/purge discards.',
  }),

  'letters.retention_days': integer({
    default: 30,
    min: 1,
    max: 36_500,
    sentence: 'How many days dead letters stay after they were resolved or given up; then they are archived.',
  }),
  'letters.archive_days': integer({
    default: 365,
    min: 1,
    max: 36_500,
    sentence: 'How many days dead letters stay in the archive; then they are gone for good.',
  }),
  'letters.retention_interval': duration({
    default: '1h',
    min: '1s',
    max: '24h',
    sentence: 'How often letters that are due are archived, and archived ones removed.',
  }),
  'letters.auto_interval': duration({
    default: '1s',
    min: '100ms',
    max: '1h',
    sentence: 'How often letters are looked for whose automatic redrive is due.',
  }),
  'letters.campaign_interval': duration({
    default: '500ms',
    min: '10ms',
    max: '1m',
    sentence: 'How often campaigns are looked at that wait for their rate or for outcomes.',
  }),

  'test.hooks': boolean({
    default: false,
    sentence: 'Adds /_test/clock and /_test/hold, for test suites. Never on a server that matters.',
  }),

  'vault.address': string({
    sentence:
      'The address of HashiCorp Vault, such as https://vault.example.com:8200; needed for vault: references.',
    pattern: /^https?:\/\/[^\s@/?#]+\/*$/,
    allowed: 'an address such as https://vault.example.com:8200',
  }),
  'vault.namespace': string({ sentence: 'The Vault namespace, where Vault has several.' }),
  'vault.token': secret({ sentence: 'The token for Vault, as file:<path>, env:<NAME> or itself.' }),
  'vault.role_id': string({ sentence: 'The role id for a login to Vault with AppRole, instead of a token.' }),
  'vault.secret_id': secret({
    sentence: 'The secret id for a login to Vault with AppRole, as file:<path>, env:<NAME> or itself.',
  }),
  'vault.approle_mount': string({
    default: 'approle',
    sentence: 'Where AppRole is mounted in Vault, below auth/.',
  }),
  'vault.kv_mount': string({
    default: 'secret',
    sentence:
      'Where the KV version 2 engine is mounted in Vault, so that both <mount>/x and <mount>/data/x are understood.',
  }),
  'vault.request_timeout': duration({
    default: '10s',
    min: '100ms',
    max: '5m',
    sentence: 'How long Vault may take to answer.',
  }),
} as const

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>

/** What a table's settings are once read: each name with the type of its value. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Setting<infer Value> ? Value : never
}

export type Settings = ValuesOf<typeof settingsTable>
export type SettingName = keyof Settings

/** `log.level` → `--log-level` */
export function flagOf(name: string): string {
  return `--${name.replaceAll(/[._]/g, '-')}`
}

/** `log.level` → `REDRIVE_LOG_LEVEL` */
export function environmentNameOf(name: string): string {
  return `REDRIVE_${name.replaceAll('.', '_').toUpperCase()}`
}
