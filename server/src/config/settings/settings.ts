import { tlsModes } from '../../storage/contract/tls.ts'
import { alertSettings } from '../alert-settings.ts'
import { deliverySettings } from '../delivery-settings.ts'
import { notificationSettings } from '../notification-settings.ts'
import { maskStore } from '../store/store-text.ts'
import { tracingSettings } from '../tracing-settings.ts'
import { watchingSettings } from '../watching-settings.ts'
import { webhookSettings } from '../webhook-settings.ts'
import type { Setting } from './setting-kinds.ts'
import {
  boolean,
  bytes,
  choice,
  clusters,
  duration,
  integer,
  list,
  pem,
  secret,
  string,
} from './setting-kinds.ts'

/**
 * The table of all settings: name, type, default, bounds and sentence. The name is used in redrive.yaml; the
 * flag and the environment variable are derived from it (`log.level`: `--log-level`, `REDRIVE_LOG_LEVEL`).
 *
 * In code a duration is a number of whole milliseconds and a size a number of whole bytes.
 */
export const settingsTable = {
  config: string({
    sentence: 'The settings file. Default: redrive.yaml in the working directory, if that file exists.',
  }),
  host: string({ default: '127.0.0.1', sentence: 'The address to listen on.' }),
  port: integer({
    default: 8080,
    min: 0,
    max: 65_535,
    sentence: 'The port to listen on. 0 selects any free port.',
  }),
  processes: integer({
    default: 1,
    min: 1,
    max: 256,
    sentence:
      'The number of processes that serve the port, usually the number of cores. More than 1 needs a PostgreSQL store. The limits of connections are for all processes together.',
  }),
  access: choice({
    choices: ['off', 'keys'],
    default: 'off',
    sentence:
      'off: every request is allowed, and the server listens on this machine only. keys: requests need an API key, a session or a token of an identity provider.',
  }),
  'auth.session_timeout': duration({
    default: '12h',
    min: '1m',
    max: '720h',
    sentence: 'How long a person stays signed in to the dashboard.',
  }),
  'auth.oidc_issuer': string({
    sentence:
      'The issuer of tokens (OpenID Connect) that are accepted as Authorization: Bearer. Needs auth.oidc_audience.',
    pattern: /^https?:\/\/\S+$/,
    allowed: 'an address such as https://login.example.com/realms/main',
  }),
  'auth.oidc_audience': string({ sentence: 'The audience that a token must name.' }),
  'auth.oidc_jwks_url': string({
    sentence:
      'The address of the keys of the issuer. Default: found at its /.well-known/openid-configuration.',
    pattern: /^https?:\/\/\S+$/,
    allowed: 'an address such as https://login.example.com/keys',
  }),
  'auth.oidc_algorithms': list({
    default: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    sentence: 'The algorithms that may sign a token.',
  }),
  'auth.oidc_clock_tolerance': duration({
    default: '30s',
    min: '0s',
    max: '10m',
    sentence: 'How far the clock of the issuer may differ.',
  }),
  'auth.oidc_roles_claim': string({
    default: 'roles',
    sentence:
      'The claim with the names of roles, such as Viewer or shop:Operator. A path such as realm_access.roles names a nested claim.',
  }),
  'auth.oidc_name_claim': string({
    default: 'sub',
    sentence: 'The claim with the name that the audit log records.',
  }),
  'auth.internal_networks': list({
    default: ['127.0.0.0/8', '::1'],
    sentence:
      'The networks that may call /internal/v1, as addresses or CIDR blocks. There X-Internal-Api-Key is accepted, too.',
  }),
  trusted_proxy: list({
    sentence:
      'The proxies whose X-Forwarded-For, Forwarded and X-Forwarded-Proto are believed, as addresses or CIDR blocks.',
  }),
  'tls.cert': string({
    sentence:
      'A PEM file with the certificate of this server and its chain. The server then speaks HTTPS only.',
  }),
  'tls.key': string({ sentence: 'A PEM file with the key of tls.cert.' }),
  'tls.reload_interval': duration({
    default: '10s',
    min: '100ms',
    max: '24h',
    sentence: 'How often the server checks whether the files of tls.cert and tls.key have changed.',
  }),
  'auth.failed_attempts_max': integer({
    default: 20,
    min: 1,
    max: 100_000,
    sentence: 'How many wrong credentials an address may send per minute.',
  }),

  store: string({
    default: 'data/redrive.db',
    sentence:
      'The store: a path or sqlite:<path> for a SQLite file, :memory: for a store that is lost at exit, or postgres://user@host:5432/database. Several hosts, separated by commas, are the servers of one cluster.',
    format: maskStore,
  }),

  must_exist: boolean({
    default: false,
    sentence: 'Refuse to start if the store does not exist, instead of creating it.',
  }),
  'store.password': secret({
    sentence:
      'The password for the PostgreSQL store. The server reads it again when the database rejects it.',
  }),
  'store.credentials': string({
    sentence:
      'The Vault path that issues user and password for the PostgreSQL store: vault:database/creds/<role>.',
    pattern: /^vault:[^#\s]+\/creds\/[^/#\s]+$/,
    allowed: 'vault:<mount>/creds/<role>',
  }),
  'store.sslmode': choice({
    choices: tlsModes,
    sentence:
      'How connections to PostgreSQL use TLS, as in libpq. Default: sslmode of the store URL, otherwise prefer.',
  }),
  'store.sslrootcert': pem({
    sentence:
      'The certificates of the authorities that may sign the certificate of the PostgreSQL server, or system. Read again for every new connection.',
  }),
  'store.sslcert': pem({
    sentence: 'The client certificate for PostgreSQL. Read again for every new connection.',
  }),
  'store.sslkey': pem({
    sentence: 'The key of the client certificate for PostgreSQL. Read again for every new connection.',
  }),
  'store.retry_backoff_max': duration({
    default: '30s',
    min: '100ms',
    max: '10m',
    sentence: 'The longest wait between two attempts to reach a store that does not respond.',
  }),
  'clock.offset_max': duration({
    default: '2s',
    min: '100ms',
    max: '1h',
    sentence:
      'How far the clock of this machine may be from the clock of the PostgreSQL server before /health and the log report it.',
  }),

  read_only: boolean({
    default: false,
    sentence:
      'Serves only reads, for example with a database user that may only read. Needs a PostgreSQL store with a current schema. Requests that would write are refused, and nothing runs in the background.',
  }),

  'database.host': string({
    sentence:
      'The host of the PostgreSQL store, or the hosts of a cluster, separated by commas. The settings database.* are another way to write store, and cannot be combined with it.',
  }),
  'database.port': integer({ min: 1, max: 65_535, sentence: 'The port of database.host. Default: 5432.' }),
  'database.name': string({ sentence: 'The database on database.host.' }),
  'database.user': string({ sentence: 'The user for database.host.' }),
  'database.password': secret({
    sentence: 'The password of database.user. Stands for store.password; empty: no password.',
  }),
  'database.ssl_mode': string({
    sentence: 'How connections to database.host use TLS. Stands for sslmode in the URL of the store.',
    pattern: /^(disable|allow|prefer|require|verify-ca|verify-full)$/,
    allowed: 'disable, allow, prefer, require, verify-ca or verify-full',
  }),
  'database.max_open_conns': integer({
    min: 2,
    max: 1_000,
    sentence: 'Stands for postgres.connections_max.',
  }),
  'database.max_idle_conns': integer({
    min: 0,
    max: 1_000,
    sentence:
      'The number of connections to PostgreSQL that stay open when they are idle for more than a minute. Default: 0.',
  }),
  'database.conn_max_lifetime': duration({
    default: '0s',
    min: '0s',
    max: '24h',
    sentence: 'How long a connection to PostgreSQL is used before it is replaced. 0s: without limit.',
  }),

  'sqlite.synchronous': choice({
    choices: ['full', 'normal-may-lose-last-commits'],
    default: 'full',
    sentence:
      'full: a commit is on disk before it is acknowledged. normal-may-lose-last-commits: faster, but a power failure can lose acknowledged writes.',
  }),

  'sqlite.lock_wait': duration({
    default: '5s',
    min: '0s',
    max: '1m',
    sentence:
      'How long to wait for a SQLite file that another server has open, such as one that is stopping.',
  }),

  'postgres.connections_max': integer({
    default: 10,
    min: 2,
    max: 1_000,
    sentence: 'The maximum number of connections that this server opens to PostgreSQL.',
  }),
  'postgres.connect_timeout': duration({
    default: '5s',
    min: '100ms',
    max: '5m',
    sentence: 'The time limit for opening a connection to PostgreSQL.',
  }),

  'http.body_bytes_max': bytes({
    default: '64MB',
    min: '1KiB',
    max: '1GiB',
    sentence: 'The maximum size of a request body. Some paths have a lower limit.',
  }),
  'http.header_bytes_max': bytes({
    default: '16KiB',
    min: '1KiB',
    max: '1MiB',
    sentence: 'The maximum total size of the headers of a request.',
  }),
  'http.request_timeout': duration({
    default: '60s',
    min: '1s',
    max: '1h',
    sentence: 'The time limit for a client to send a complete request, headers and body.',
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
    sentence: 'The maximum number of open connections. Further connections are closed immediately.',
  }),

  'log.level': choice({
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    sentence: 'The lowest level that is logged.',
  }),
  'log.format': choice({
    choices: ['auto', 'json', 'pretty'],
    default: 'auto',
    sentence: 'The format of log lines. auto: pretty on a terminal, json otherwise.',
  }),

  'counts.reconcile_interval': duration({
    default: '10m',
    min: '1s',
    max: '24h',
    sentence: 'How often the server compares the counts with the rows they count.',
  }),

  'stop.timeout': duration({
    default: '25s',
    min: '0s',
    max: '1h',
    sentence: 'How long requests in progress may continue after the server is asked to stop.',
  }),

  'queue.requests_max': integer({
    default: 100,
    min: 1,
    max: 1_000_000,
    sentence:
      'The maximum number of requests per queue that wait to be written. Further requests are refused.',
  }),
  'queue.store_timeout': duration({
    default: '3s',
    min: '100ms',
    max: '1m',
    sentence:
      'The time limit for one store operation: a batch of requests, creating or updating a queue, a step of an import, or a read. After it, waiting callers get an error and should retry.',
  }),
  'queue.produce_items_max': integer({
    default: 1_000,
    min: 1,
    max: 65_536,
    sentence: 'The maximum number of items that one call of the Queue API may produce.',
  }),
  'queue.lease_items_max': integer({
    default: 1_000,
    min: 1,
    max: 65_536,
    sentence: 'The maximum number of items that one call of the Queue API may lease.',
  }),
  'queue.complete_items_max': integer({
    default: 1_000,
    min: 1,
    max: 65_536,
    sentence: 'The maximum number of items that one call of the Queue API may complete or retry.',
  }),

  'dlq.page_size_default': integer({
    default: 25,
    min: 1,
    max: 100,
    variable: 'DLQ_PAGE_SIZE_DEFAULT',
    sentence: 'The number of dead letters per page of GET /api/v1/dlq if the request has no page_size.',
  }),
  'dlq.page_size_max': integer({
    default: 100,
    min: 1,
    max: 500,
    variable: 'DLQ_PAGE_SIZE_MAX',
    sentence: 'The maximum page_size of GET /api/v1/dlq. It also caps dlq.page_size_default.',
  }),
  'dlq.requeue_limit': integer({
    default: 500,
    min: 1,
    max: 1_000,
    variable: 'DLQ_REQUEUE_LIMIT',
    sentence: 'The maximum number of ids in one call of POST /api/v1/dlq/requeue.',
  }),
  'dlq.purge_limit': integer({
    default: 1_000,
    min: 1,
    max: 5_000,
    variable: 'DLQ_PURGE_LIMIT',
    sentence:
      'The maximum number of ids or matching letters that one call of POST /api/v1/dlq/purge discards.',
  }),

  'letters.retention_days': integer({
    default: 30,
    min: 1,
    max: 36_500,
    sentence:
      'How many days dead letters are kept after they ended (RESOLVED, DISCARDED or DEAD) before they are archived.',
  }),
  'letters.archive_retention_days': integer({
    default: 365,
    min: 1,
    max: 36_500,
    sentence: 'How many days dead letters stay in the archive before they are removed permanently.',
  }),
  'letters.retention_interval': duration({
    default: '1h',
    min: '1s',
    max: '24h',
    sentence:
      'How often the server archives letters that are due and removes expired letters from the archive.',
  }),
  'letters.redrive_interval': duration({
    default: '1s',
    min: '100ms',
    max: '1h',
    sentence: 'How often the server searches for letters whose automatic redrive is due.',
  }),
  'letters.campaign_interval': duration({
    default: '500ms',
    min: '10ms',
    max: '1m',
    sentence: 'How often the server checks campaigns that wait for their rate limit or for outcomes.',
  }),

  'kafka.clusters': clusters({
    sentence:
      'The Kafka clusters whose dead-letter topics are read, as a map by name; see kafka.md. As a flag or an environment variable: the same map as JSON.',
  }),
  'kafka.discovery_interval': duration({
    default: '30s',
    min: '1s',
    max: '1h',
    sentence: 'How often the server looks for new dead-letter topics.',
  }),
  'kafka.proof_grace': duration({
    default: '30s',
    min: '0s',
    max: '24h',
    sentence:
      'How long after its consumer group passed a redriven record the record may die again, before its letter is resolved.',
  }),
  'kafka.proof_timeout': duration({
    default: '24h',
    min: '1s',
    max: '720h',
    sentence:
      'How long a redriven record may wait for its consumer group before the outcome of the redrive is unknown.',
  }),
  'kafka.proof_interval': duration({
    default: '2s',
    min: '100ms',
    max: '10m',
    sentence: 'How often the server compares redriven records with the progress of their consumer groups.',
  }),
  'kafka.lag_interval': duration({
    default: '15s',
    min: '1s',
    max: '1h',
    sentence: 'How often the server reads the lag of consumer groups.',
  }),
  'kafka.retry_backoff_max': duration({
    default: '30s',
    min: '100ms',
    max: '10m',
    sentence: 'The longest wait between two attempts to reach a Kafka cluster that does not respond.',
  }),
  ...watchingSettings,
  ...notificationSettings,
  ...alertSettings,
  ...deliverySettings,
  ...webhookSettings,
  ...tracingSettings,

  'test.hooks': boolean({
    default: false,
    sentence: 'Adds /_test/clock and /_test/hold for test suites. Never enable it in production.',
  }),

  'vault.address': string({
    sentence:
      'The address of HashiCorp Vault, such as https://vault.example.com:8200. Required for vault: references.',
    pattern: /^https?:\/\/[^\s@/?#]+\/*$/,
    allowed: 'an address such as https://vault.example.com:8200',
  }),
  'vault.namespace': string({ sentence: 'The Vault namespace, if Vault has several.' }),
  'vault.token': secret({ sentence: 'The Vault token: file:<path>, env:<NAME> or the token itself.' }),
  'vault.role_id': string({ sentence: 'The role id for an AppRole login to Vault, instead of a token.' }),
  'vault.secret_id': secret({
    sentence: 'The secret id for an AppRole login to Vault: file:<path>, env:<NAME> or the secret id itself.',
  }),
  'vault.approle_mount': string({
    default: 'approle',
    sentence: 'The mount path of AppRole in Vault, below auth/.',
  }),
  'vault.kv_mount': string({
    default: 'secret',
    sentence:
      'The mount path of the KV version 2 engine in Vault. It lets Redrive accept both <mount>/x and <mount>/data/x.',
  }),
  'vault.request_timeout': duration({
    default: '10s',
    min: '100ms',
    max: '5m',
    sentence: 'The time limit for a request to Vault.',
  }),
} as const

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>

/** The values of a settings table after reading: each name with the type of its value. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Setting<infer Value> ? Value : never
}

export type Settings = ValuesOf<typeof settingsTable>
export type SettingName = keyof Settings

/** `log.level` → `--log-level` */
export function toFlag(name: string): string {
  return `--${name.replaceAll(/[._]/g, '-')}`
}

/** `log.level` → `REDRIVE_LOG_LEVEL` */
export function toEnvironmentName(name: string): string {
  return `REDRIVE_${name.replaceAll('.', '_').toUpperCase()}`
}
