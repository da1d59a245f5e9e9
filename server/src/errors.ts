type Entry = Readonly<{
  status: number
  hint: string
  /** Sent to callers instead of the message, which may reveal where the store is and goes to the log only. */
  publicMessage?: string
}>

/**
 * The catalogue of all expected errors. It decides code, status and hint; each dialect renders them in its
 * own format. `docs/errors.md` is generated from this table.
 */
const catalog = {
  BAD_REQUEST: { status: 400, hint: 'Correct the request as the message describes, then send it again.' },
  BODY_TOO_LARGE: { status: 413, hint: 'Send fewer or smaller items per request.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, hint: 'Send the body as JSON with Content-Type: application/json.' },
  URL_TOO_LONG: {
    status: 414,
    hint: 'Send long values in the request body, or request fewer values at once.',
  },
  HEADERS_TOO_LARGE: { status: 431, hint: 'Send fewer or shorter headers, for example fewer cookies.' },
  REQUEST_TIMEOUT: {
    status: 408,
    hint: 'Send the complete request faster, or split it into smaller requests.',
  },
  HOST_REFUSED: {
    status: 403,
    hint: 'Call http://127.0.0.1 or http://localhost. Without access control the server accepts only local requests.',
  },
  NOT_FOUND: { status: 404, hint: 'Check the path. GET /docs lists all paths.' },
  METHOD_NOT_ALLOWED: { status: 405, hint: 'Use a method that the Allow header of this response lists.' },
  INTERNAL: {
    status: 500,
    hint: 'Find the request id in the server log, then report the error with its log lines.',
  },
  SERVER_OVERLOADED: {
    status: 503,
    hint: 'Retry after the seconds in Retry-After, and send fewer large requests at the same time.',
  },
  SHUTTING_DOWN: { status: 503, hint: 'Send the request to another server, or retry it in a few seconds.' },
  STORE_UNAVAILABLE: {
    status: 503,
    publicMessage: 'the store cannot be reached',
    hint: 'Retry the request. The server reconnects to its store automatically.',
  },
  STORE_REFUSED: {
    status: 500,
    publicMessage: 'the store refuses this server',
    hint: 'Check the user name, the password, the database name and the permissions of the user.',
  },
  STORE_TLS_FAILED: {
    status: 503,
    publicMessage: 'there is no secure connection to the store',
    hint: 'Check sslmode, sslrootcert, sslcert and sslkey of the store, and the certificate of the database server.',
  },
  STORE_FULL: {
    status: 507,
    publicMessage: 'the store has no space left; nothing was written',
    hint: 'Free disk space for the store, then retry the request. No stored data was lost.',
  },
  STORE_URL_INVALID: {
    status: 500,
    publicMessage: 'the store cannot be used',
    hint: 'Use a path, sqlite:<path>, :memory: or postgres://user@host:5432/database.',
  },
  STORE_LOCKED: {
    status: 500,
    publicMessage: 'the store is in use by another program',
    hint: 'Stop the other program. Only one server can use a SQLite file; use PostgreSQL for several servers.',
  },
  STORE_MISSING: {
    status: 500,
    publicMessage: 'the store does not exist',
    hint: 'Check --store. To create a new store, run redrive serve or redrive migrate without --must-exist.',
  },
  STORE_UNWRITABLE: {
    status: 500,
    publicMessage: 'the store cannot be written to',
    hint: 'Give the user that runs Redrive write access to the folder.',
  },
  STORE_NOT_OURS: {
    status: 500,
    publicMessage: 'the store was not created by Redrive',
    hint: 'Point --store at a new file or database, or at a store that Redrive created.',
  },
  READ_ONLY: {
    status: 403,
    hint: 'Send the request to a server without read_only. This server serves only reads.',
  },
  SCHEMA_NEWER: {
    status: 500,
    publicMessage: 'the store was written by a newer Redrive',
    hint: 'Run the Redrive version that last migrated this store, or a newer version.',
  },
  SCHEMA_OLDER: {
    status: 500,
    publicMessage: 'the schema of the store must be updated first',
    hint: 'Stop the servers that use the store, and run redrive migrate with a user that may write.',
  },
  SCHEMA_DIFFERS: {
    status: 500,
    publicMessage: 'the store was created by a different build of Redrive',
    hint: 'Run the build that created this store, or point --store at a new file or database. Nothing was changed.',
  },
  QUEUE_NOT_FOUND: { status: 404, hint: 'Check the name of the queue, or create the queue first.' },
  QUEUE_EXISTS: { status: 409, hint: 'Choose another name, or update the existing queue.' },
  QUEUE_IN_USE: { status: 409, hint: 'First change the queues that use it as their dead queue.' },
  QUEUE_HOLDS_LETTERS: {
    status: 409,
    hint: 'Redrive or discard the letters first. With force, deleting the queue also erases them; queue.clear with destructive discards them.',
  },
  PARTITION_NOT_FOUND: {
    status: 400,
    hint: 'Use a partition number from 0 to the number of partitions minus 1.',
  },
  DEAD_QUEUE_INVALID: {
    status: 400,
    hint: 'Name another existing queue that has no dead queue itself. A queue with dead letters cannot have a dead queue.',
  },
  LEASE_TOO_LONG: {
    status: 400,
    hint: 'Shorten lease_timeout, or increase expire_timeout.',
  },
  QUEUE_OVERLOADED: {
    status: 429,
    hint: 'Retry in a moment, send fewer requests at once, or send more items per request.',
  },
  QUEUE_SHUTTING_DOWN: {
    status: 503,
    hint: 'Check whether the queue still exists, then retry. The queue is being deleted, or its server is stopping.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 409,
    hint: 'Use a new idempotency key for different items, or repeat the original request unchanged.',
  },
  CALL_TIMEOUT: { status: 408, hint: 'Retry the request, or allow it more time. Nothing was changed.' },
  LEASE_TIMEOUT: { status: 408, hint: 'Lease again. No item became available in time.' },
  CLIENT_ID_BUSY: {
    status: 409,
    hint: 'Give every worker its own client id, or wait until the lease call of this client id returns.',
  },
  MESSAGE_NOT_FOUND: { status: 404, hint: 'Check the ids of the channel and the message.' },
  CONSUMER_NOT_FOUND: { status: 404, hint: 'Check the ids of the channel and the consumer.' },
  CONSUMER_CHANGED: {
    status: 409,
    hint: 'Read the consumer again, then repeat the request. Another request changed it at the same time.',
  },
  CONSUMER_NOT_PUSHED: {
    status: 409,
    hint: 'Use a consumer of type push. A pull consumer fetches its jobs itself.',
  },
  ITEM_NOT_FOUND: {
    status: 404,
    hint: 'Use the current id. The item may be completed, moved or retried; a retried item gets a new id.',
  },
  ITEM_NOT_LEASED: { status: 409, hint: 'Stop working on this item: its lease has ended.' },
  ITEM_ID_INVALID: {
    status: 400,
    hint: 'Use the item id exactly as the server returned it: 27 letters and digits.',
  },
  CONTENT_UNREADABLE: {
    status: 400,
    hint: 'Send a body that matches its Content-Type, and accept JSON or protobuf.',
  },
  LETTER_NOT_FOUND: {
    status: 404,
    hint: 'Check the id. The letter may already have been purged from the archive.',
  },
  LETTER_NOT_RETRYABLE: {
    status: 409,
    hint: 'Check the status of the letter. PENDING letters can be redriven; DEAD letters only with include_dead.',
  },
  LETTER_NOT_DISCARDABLE: {
    status: 409,
    hint: 'Wait until its redrive or lease ends, or cancel the redrive. Resolved letters cannot be discarded.',
  },
  GROUP_NOT_FOUND: { status: 404, hint: 'Check the id. GET /api/v1/groups lists all groups.' },
  GROUP_JOB_NOT_FOUND: { status: 404, hint: 'Check the id. GET /api/v1/group-jobs lists all jobs.' },
  GROUP_JOB_CHANGED: { status: 409, hint: 'Read the job again: another request changed it.' },
  ALERT_NOT_FOUND: { status: 404, hint: 'Check the id. GET /api/v1/alerts lists all alerts.' },
  ALERT_STATE: { status: 409, hint: 'Read the alert again: only an alert that fires can be changed.' },
  ALERT_RULE_NOT_FOUND: {
    status: 404,
    hint: 'Check the name. GET /api/v1/alerts/rules lists all rules.',
  },
  ALERT_RULE_EXISTS: { status: 409, hint: 'Choose another name for the rule.' },
  ALERT_RULE_FIXED: {
    status: 409,
    hint: 'Change a rule of the configuration in redrive.yaml, and disable a built-in rule with is_enabled: false.',
  },
  ALERT_CHANGED: { status: 409, hint: 'Read the alert again: it was changed at the same time.' },
  ALERT_CHANNEL_NOT_FOUND: {
    status: 404,
    hint: 'Check the name. GET /api/v1/alerts/channels lists all channels.',
  },
  ALERT_CHANNEL_EXISTS: { status: 409, hint: 'Choose another name for the channel.' },
  ALERT_CHANNEL_INVALID: {
    status: 409,
    hint: 'Correct the channel in its configuration file, or with PUT /api/v1/alerts/channels/{name}.',
  },
  ALERT_CHANNEL_CONFIGURED: {
    status: 409,
    hint: 'Change the channel in redrive.yaml (alerts.channels), then restart the server.',
  },
  ALERT_CONFIG_CHANGED: {
    status: 409,
    hint: 'Read the rule or channel again, then retry. Another request changed it at the same time.',
  },
  ALERT_CONFIGS_FULL: { status: 409, hint: 'Delete rules or channels that are not needed any more.' },
  CAUSE_NOT_FOUND: { status: 404, hint: 'Check the id. GET /api/v1/causes lists all causes.' },
  TARGET_INVALID: {
    status: 400,
    hint: 'Name an existing queue that is not a dead queue and never held dead letters.',
  },
  TARGET_UNAVAILABLE: {
    status: 503,
    hint: 'Create the source queue of the letter again, or redrive the letter to another queue. Nothing was changed.',
  },
  PAGE_TOO_DEEP: {
    status: 400,
    hint: 'Retry to continue from the point reached so far, narrow the list, or page by cursor with GET /api/v1/letters.',
  },
  CAMPAIGN_NOT_FOUND: { status: 404, hint: 'Check the id. GET /api/v1/campaigns lists all campaigns.' },
  CAMPAIGN_STATE: { status: 409, hint: 'Check the state of the campaign; this action is not allowed in it.' },
  CAMPAIGN_CHANGED: {
    status: 409,
    hint: 'Read the campaign again, then retry. Another request changed it at the same time.',
  },
  SELECTION_CHANGED: {
    status: 409,
    hint: 'Preview the selection again, then repeat the request with the number of letters that you expect.',
  },
  RETENTION_BUSY: {
    status: 409,
    hint: 'Retention is already running on another server; no action is needed.',
  },
  WORKER_NOT_FOUND: {
    status: 404,
    hint: 'GET /api/v1/workers lists the workers. A worker that stopped is forgotten after workers.retention.',
  },
  WORKERS_TOO_MANY: {
    status: 409,
    hint: 'Raise workers.count_max, or forget workers that will not return.',
  },
  KAFKA_CLUSTER_NOT_FOUND: {
    status: 404,
    hint: 'Use the name of a cluster in kafka.clusters; GET /api/v1/kafka lists them.',
  },
  KAFKA_TOPIC_SHARED: {
    status: 409,
    hint: 'Redrive to the side topic of the group that failed, or with the header or force: see docs/kafka.md.',
  },
  KAFKA_UNAVAILABLE: {
    status: 503,
    publicMessage: 'the Kafka cluster does not answer',
    hint: 'Retry the request. The server reconnects to the cluster automatically; GET /health has the reason.',
  },
  KAFKA_PARTITION_LOST: {
    status: 409,
    hint: 'Stop reading this partition: another server has taken it over and continues.',
  },
  SOURCE_ID_EXISTS: {
    status: 409,
    hint: 'Import the items without isNewOnly: those that are already there are then skipped.',
  },
  LOCK_LOST: { status: 409, hint: 'Stop this work: another server has taken it over.' },
  CREDENTIAL_MISSING: {
    status: 401,
    hint: 'Send a key as Authorization: Bearer <key> or X-API-Key. redrive keys create makes one.',
  },
  CREDENTIAL_REFUSED: {
    status: 403,
    hint: 'Check that the key is complete, has not expired and was not revoked. redrive keys list shows all keys.',
  },
  ACCESS_DENIED: {
    status: 403,
    hint: 'Ask an administrator for a role with this permission. docs/access.md lists the permissions of each role.',
  },
  IDENTITY_PROVIDER_UNAVAILABLE: {
    status: 503,
    hint: 'Check auth.oidc_issuer and auth.oidc_jwks_url, and that this server reaches the identity provider. API keys still work.',
  },
  TLS_FILES_INVALID: {
    status: 500,
    hint: 'Check tls.cert and tls.key: PEM files that belong together, and that the user of the server may read.',
  },
  TOO_MANY_FAILED_ATTEMPTS: {
    status: 429,
    hint: 'Wait for the seconds in Retry-After, and correct the credential. Other addresses are not affected.',
  },
  CROSS_SITE_REFUSED: {
    status: 403,
    hint: 'Send the request from a page of this server, or with a key in a header instead of the session cookie.',
  },
  ACCESS_CHANGED: {
    status: 409,
    hint: 'Retry the request. Several changes of users, keys, roles or namespaces were made at the same time.',
  },
  QUOTA_EXCEEDED: {
    status: 403,
    hint: 'Complete or discard items, delete queues, or ask an administrator for a larger quota of the namespace.',
  },
  RATE_EXCEEDED: {
    status: 429,
    hint: 'Retry after the seconds in Retry-After, and send fewer requests per second.',
  },
  NAMESPACE_NOT_FOUND: { status: 404, hint: 'Check the name, or create the namespace first.' },
  NAMESPACE_EXISTS: { status: 409, hint: 'Choose another name, or update the existing namespace.' },
  NAMESPACE_IN_USE: { status: 409, hint: 'First delete its role bindings, its roles and its queues.' },
  USER_NOT_FOUND: { status: 404, hint: 'Check the id. POST /v1/users.list lists all users.' },
  USER_EXISTS: { status: 409, hint: 'Choose another user name.' },
  API_KEY_NOT_FOUND: { status: 404, hint: 'Check the id. POST /v1/apikeys.list lists all keys.' },
  ROLE_NOT_FOUND: {
    status: 404,
    hint: 'Check the name and the namespace. POST /v1/roles.list lists all roles.',
  },
  ROLE_EXISTS: { status: 409, hint: 'Choose another name, or update the existing role.' },
  ROLE_IN_USE: { status: 409, hint: 'First delete the bindings of the role.' },
  ROLE_STANDARD: {
    status: 409,
    hint: 'Create a role of your own. Every server has the same standard roles.',
  },
  ROLE_BINDING_NOT_FOUND: {
    status: 404,
    hint: 'Check the namespace, the role and the user. POST /v1/rolebindings.list lists all bindings.',
  },
  ROLE_BINDING_EXISTS: { status: 409, hint: 'No action is needed: the user has the role already.' },
  CHANNEL_NOT_FOUND: {
    status: 404,
    hint: 'Check the id, or create the channel with PUT /channel/{channelId}.',
  },
  PRODUCER_NOT_FOUND: { status: 404, hint: 'Check the id. GET /producers lists all producers.' },
  JOB_NOT_FOUND: { status: 404, hint: 'Check the id. The job may have been deleted, or not be dead.' },
  PRODUCER_UNKNOWN: {
    status: 401,
    hint: 'Send the id of a registered producer in X-Broker-Producer-ID.',
  },
  CONSUMER_UNKNOWN: { status: 401, hint: 'Check the id of the consumer, or register the consumer first.' },
  JOB_OF_ANOTHER: { status: 401, hint: 'Use the channel and the consumer that the job belongs to.' },
  TOKEN_REFUSED: { status: 403, hint: 'Send the present token. A PUT without a token creates a new one.' },
  MESSAGE_ID_TAKEN: { status: 409, hint: 'Use another X-Broker-Message-ID. This message is stored already.' },
  CONSUMER_HAS_JOBS: { status: 409, hint: 'Wait until its messages are pruned, or keep the consumer.' },
  CONDITION_FAILED: {
    status: 412,
    hint: 'Read the object again, and send its Last-Modified as If-Unmodified-Since.',
  },
  SCHEDULE_TOO_EARLY: { status: 412, hint: 'Schedule the message later, or send it without a schedule.' },
  CONSUMER_NOT_PULLED: { status: 412, hint: 'Use a consumer of type pull. Jobs of others are pushed.' },
  SIGNATURE_MISSING: {
    status: 401,
    hint: 'Send X-Broker-Signature: t=<unix seconds>,v1=<lowercase hex of the HMAC>.',
  },
  SIGNATURE_REFUSED: { status: 403, hint: 'Check the shared secret, the clock and the signed bytes.' },
  SETTING_INVALID: { status: 500, hint: 'Run redrive serve --help for all settings and their bounds.' },
  PROCESSES_REFUSED: {
    status: 500,
    hint: 'Use --store postgres://… for several processes, or omit --processes.',
  },
  SECRET_UNAVAILABLE: {
    status: 500,
    publicMessage: 'a secret that this server needs cannot be read',
    hint: 'Check the reference, and check that the file, variable or Vault path is readable.',
  },
  PROTECTED_MODE: {
    status: 500,
    hint: 'Require API keys: redrive serve --host 0.0.0.0 --access keys. Without access control, listen on 127.0.0.1.',
  },
  PORT_REFUSED: { status: 500, hint: 'Choose an address of this machine and a port above 1023.' },
  PORT_TAKEN: { status: 500, hint: 'Stop the other program, or choose another port with --port.' },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof catalog

export const errorCodes = Object.keys(catalog) as readonly ErrorCode[]

export function getErrorEntry(code: ErrorCode): Readonly<{ status: number; hint: string }> {
  return catalog[code]
}

/** An expected error. Everything else that is thrown is a defect: logged in full and returned as INTERNAL. */
export class KnownError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly hint: string
  readonly #publicMessage: string

  /** `publicMessage` defaults to the one in the catalogue, then to `message`. */
  constructor(code: ErrorCode, message: string, cause?: unknown, publicMessage?: string) {
    super(message, { cause })
    const entry: Entry = catalog[code]
    this.name = 'KnownError'
    this.code = code
    this.status = entry.status
    this.hint = entry.hint
    this.#publicMessage = publicMessage ?? entry.publicMessage ?? message
  }

  /**
   * Safe to send to any caller. `message` may contain internal detail and is for the log and the terminal.
   * A getter, so that the logger does not print it next to `message`.
   */
  get publicMessage(): string {
    return this.#publicMessage
  }
}

/** The request was wrong, not the server or the store: the same request would fail again. */
export function isCallersFault(error: unknown): boolean {
  return error instanceof KnownError && error.status < 500
}
