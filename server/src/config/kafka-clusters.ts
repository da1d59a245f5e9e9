/**
 * The setting `kafka.clusters`: a map of clusters by name. In redrive.yaml it is written as nested maps; a
 * flag or an environment variable has the same structure as JSON. docs/kafka.md describes the fields.
 */

import { type KafkaCluster, type KafkaSasl, type KafkaTls, saslMechanisms } from '../core/kafka/cluster.ts'
import { type ReplayMode, replayModes } from '../core/kafka/replay-queues.ts'
import { deadTopicPatterns } from '../core/kafka/topic-patterns.ts'
import { parseDuration } from '../core/time/duration.ts'
import { KnownError } from '../errors.ts'
import { Secret } from './secrets/secret.ts'
import {
  parsePemReference,
  parseReference,
  showPemReference,
  showReference,
} from './secrets/secret-reference.ts'

export type KafkaClusterSettings = KafkaCluster<Secret>

const clusterNamePattern = /^[a-zA-Z0-9_-]{1,64}$/
const brokerPattern = /^(\[[0-9a-fA-F:]+\]|[^\s:/@]+):\d{1,5}$/

export function parseKafkaClusters(text: string): readonly KafkaClusterSettings[] {
  const root = new Node(parseJson(text), 'kafka.clusters')
  return root.entries().map(([name, node]) => {
    if (!clusterNamePattern.test(name))
      throw refuse(`${node.path}: a cluster name has 1 to 64 letters, digits, "_" or "-"`)
    return readCluster(name, node)
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw refuse('kafka.clusters is not a map of clusters in YAML or JSON', error)
  }
}

const clusterFields = [
  'brokers',
  'tls',
  'sasl',
  'topics',
  'topics_ignored',
  'group',
  'session_timeout',
  'queue',
  'classes',
  'replay',
  'create_topics',
  'keep_error_headers',
]

function readCluster(name: string, node: Node): KafkaClusterSettings {
  node.only(clusterFields)
  const brokers = node.at('brokers').list()
  const wrong = brokers.find((broker) => !brokerPattern.test(broker))
  if (brokers.length === 0 || wrong !== undefined)
    throw refuse(
      `${node.path}.brokers must be a list of host:port, and has ${JSON.stringify(wrong ?? 'none')}`,
    )
  return {
    name,
    brokers,
    tls: readTls(node.at('tls')),
    sasl: readSasl(node.at('sasl')),
    topics: node.at('topics').isMissing ? deadTopicPatterns : node.at('topics').list(),
    topicsIgnored: node.at('topics_ignored').list(),
    group: node.at('group').text() ?? 'redrive',
    sessionTimeoutMs: readSessionTimeout(node.at('session_timeout')),
    queue: readQueueName(node.at('queue')),
    classes: node
      .at('classes')
      .entries()
      .map(([topics, value]) => ({ topics, letterClass: value.required() })),
    replay: readReplayMode(node.at('replay')),
    mayCreateTopics: node.at('create_topics').boolean() ?? true,
    keepsErrorHeaders: node.at('keep_error_headers').boolean() ?? false,
  }
}

function readQueueName(node: Node): string {
  const queue = node.text() ?? '{topic}'
  if (!queue.includes('{topic}')) throw refuse(`${node.path} must contain {topic}`)
  return queue
}

const [sessionMsMin, sessionMsMax] = [6_000, 300_000]

/** The bounds are the defaults of Kafka brokers. */
function readSessionTimeout(node: Node): number {
  const text = node.text() ?? '30s'
  const ms = parseMs(text)
  if (ms === undefined || ms < sessionMsMin || ms > sessionMsMax)
    throw refuse(`${node.path} is ${text}, but must be a duration from 6s to 5m`)
  return ms
}

function parseMs(text: string): number | undefined {
  try {
    return Math.ceil(parseDuration(text) / 1_000)
  } catch {
    return undefined
  }
}

function readReplayMode(node: Node): ReplayMode {
  const given = node.text() ?? 'topic'
  const mode = replayModes.find((each) => each === given)
  if (mode === undefined)
    throw refuse(`${node.path} is ${given}, but must be one of ${replayModes.join(', ')}`)
  return mode
}

/** `tls: true` verifies the brokers by the authorities of the system. */
function readTls(node: Node): KafkaTls<Secret> | null {
  if (node.isMissing || node.isText('false')) return null
  if (node.isText('true')) return { ca: null, cert: null, key: null, serverName: null }
  node.only(['ca', 'cert', 'key', 'server_name'])
  const pem = (name: string): Secret | null => {
    const text = node.at(name).text()
    return text === undefined ? null : parsePemReference(text)
  }
  return {
    ca: pem('ca'),
    cert: pem('cert'),
    key: pem('key'),
    serverName: node.at('server_name').text() ?? null,
  }
}

function readSasl(node: Node): KafkaSasl<Secret> | null {
  if (node.isMissing) return null
  node.only(['mechanism', 'username', 'password'])
  const given = node.at('mechanism').required().toLowerCase()
  const mechanism = saslMechanisms.find((each) => each === given)
  if (mechanism === undefined)
    throw refuse(`${node.path}.mechanism is ${given}, but must be one of ${saslMechanisms.join(', ')}`)
  const password = node.at('password').required()
  if (parseReference(password) === undefined)
    throw refuse(
      `${node.path}.password must be the secret itself, file:<path>, env:<NAME> or vault:<path>#<key>`,
    )
  return { mechanism, username: node.at('username').required(), password: new Secret(password) }
}

/** Formats clusters for `redrive settings`. Never shows a secret. */
export function formatKafkaClusters(clusters: readonly KafkaClusterSettings[]): string {
  const shown = clusters.map(({ name, brokers, tls, sasl, topics, group }) => {
    const pem = (secret: Secret | null) => secret && showPemReference(secret.reveal())
    return [
      name,
      {
        brokers,
        ...(tls && { tls: { ...tls, ca: pem(tls.ca), cert: pem(tls.cert), key: pem(tls.key) } }),
        ...(sasl && { sasl: { ...sasl, password: showReference(sasl.password) } }),
        topics,
        group,
      },
    ]
  })
  return JSON.stringify(Object.fromEntries(shown))
}

/** A value of the setting, with its path for error messages. */
class Node {
  readonly path: string
  readonly #value: unknown

  constructor(value: unknown, path: string) {
    this.#value = value
    this.path = path
  }

  get isMissing(): boolean {
    return this.#value === undefined || this.#value === null
  }

  isText(text: string): boolean {
    return String(this.#value) === text
  }

  at(name: string): Node {
    const map = this.#value as Readonly<Record<string, unknown>> | undefined
    const isOwn = typeof map === 'object' && map !== null && Object.hasOwn(map, name)
    return new Node(isOwn ? map[name] : undefined, `${this.path}.${name}`)
  }

  entries(): readonly (readonly [string, Node])[] {
    if (this.isMissing) return []
    if (typeof this.#value !== 'object' || Array.isArray(this.#value))
      throw refuse(`${this.path} must be a map`)
    return Object.keys(this.#value as object).map((name) => [name, this.at(name)])
  }

  only(names: readonly string[]): void {
    const unknown = this.entries().find(([name]) => !names.includes(name))
    if (unknown !== undefined) throw refuse(`${unknown[1].path} is unknown; known are ${names.join(', ')}`)
  }

  text(): string | undefined {
    if (this.isMissing) return undefined
    if (typeof this.#value === 'object' || String(this.#value).trim() === '')
      throw refuse(`${this.path} must be a text that is not empty`)
    return String(this.#value)
  }

  required(): string {
    const text = this.text()
    if (text === undefined) throw refuse(`${this.path} is missing`)
    return text
  }

  boolean(): boolean | undefined {
    const text = this.text()
    if (text === undefined) return undefined
    if (text === 'true' || text === 'false') return text === 'true'
    throw refuse(`${this.path} must be true or false`)
  }

  /** A list, or texts separated by commas. */
  list(): readonly string[] {
    if (this.isMissing) return []
    const entries = Array.isArray(this.#value) ? this.#value.map(String) : String(this.#value).split(',')
    return entries.map((entry) => entry.trim()).filter((entry) => entry !== '')
  }
}

function refuse(message: string, cause?: unknown): KnownError {
  return new KnownError('SETTING_INVALID', message, cause)
}
