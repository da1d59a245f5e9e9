/**
 * The setting `kafka.clusters`: a map of clusters by name. In redrive.yaml it is written as nested maps; a
 * flag or an environment variable has the same structure as JSON. docs/kafka.md describes the fields.
 */

import { type KafkaCluster, type KafkaSasl, type KafkaTls, saslMechanisms } from '../core/kafka/cluster.ts'
import { type ReplayMode, replayModes } from '../core/kafka/replay-queues.ts'
import { deadTopicPatterns } from '../core/kafka/topic-patterns.ts'
import { parseDuration } from '../core/time/duration.ts'
import { Secret } from './secrets/secret.ts'
import {
  parsePemReference,
  parseReference,
  showPemReference,
  showReference,
} from './secrets/secret-reference.ts'
import { refuseSetting as refuse, SettingNode } from './settings/setting-node.ts'

export type KafkaClusterSettings = KafkaCluster<Secret>

const clusterNamePattern = /^[a-zA-Z0-9_-]{1,64}$/
const brokerPattern = /^(\[[0-9a-fA-F:]+\]|[^\s:/@]+):\d{1,5}$/

export function parseKafkaClusters(text: string): readonly KafkaClusterSettings[] {
  const root = SettingNode.parse(text, 'kafka.clusters', 'a map of clusters')
  return root.entries().map(([name, node]) => {
    if (!clusterNamePattern.test(name))
      throw refuse(`${node.path}: a cluster name has 1 to 64 letters, digits, "_" or "-"`)
    return readCluster(name, node)
  })
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

function readCluster(name: string, node: SettingNode): KafkaClusterSettings {
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

function readQueueName(node: SettingNode): string {
  const queue = node.text() ?? '{topic}'
  if (!queue.includes('{topic}')) throw refuse(`${node.path} must contain {topic}`)
  return queue
}

const [sessionMsMin, sessionMsMax] = [6_000, 300_000]

/** The bounds are the defaults of Kafka brokers. */
function readSessionTimeout(node: SettingNode): number {
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

function readReplayMode(node: SettingNode): ReplayMode {
  const given = node.text() ?? 'topic'
  const mode = replayModes.find((each) => each === given)
  if (mode === undefined)
    throw refuse(`${node.path} is ${given}, but must be one of ${replayModes.join(', ')}`)
  return mode
}

/** `tls: true` verifies the brokers by the authorities of the system. */
function readTls(node: SettingNode): KafkaTls<Secret> | null {
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

function readSasl(node: SettingNode): KafkaSasl<Secret> | null {
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
