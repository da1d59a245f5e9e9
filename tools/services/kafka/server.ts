import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findFreePort } from '../process/free-port.ts'
import { runCommand } from '../process/run-command.ts'
import { supervise } from '../process/supervise.ts'
import { describeCluster } from './describe-cluster.ts'
import { type KafkaProgram, resolveKafka } from './jars.ts'

export interface KafkaServer extends AsyncDisposable {
  readonly brokers: readonly string[]
  readonly version: string
  /** Brokers that demand a login, that use TLS, and that do both, if `secured` is given. */
  readonly sasl: readonly string[]
  readonly tls: readonly string[]
  readonly saslTls: readonly string[]
  /** Acts like a crash. */
  stop(): Promise<void>
  /** Starts again on the same ports with the same data. */
  start(): Promise<void>
  /** Stops the server and removes its data. Can be called twice. */
  end(): Promise<void>
}

/** A login for PLAIN and SCRAM, and a certificate for 127.0.0.1 with its key, both as PEM text. */
export type KafkaSecurity = Readonly<{ user: string; password: string; certificate: string; key: string }>
export type KafkaOptions = Readonly<{ secured?: KafkaSecurity }>

const readyMsMax = 90_000

// A small node that starts fast: the simplest garbage collector, and only the first level of compilation.
const javaOptions = ['-Xms128m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']

/** Starts one node that is broker and controller, without ZooKeeper. */
export async function startKafka({ secured }: KafkaOptions = {}): Promise<KafkaServer> {
  const program = await resolveKafka()
  const supervised = await supervise('kafka')
  try {
    const places = await Promise.all([findPlace(), findPlace(), findPlace(), findPlace(), findPlace()])
    const [broker, , sasl, tls, saslTls] = places
    const configFile = join(supervised.folder, 'server.properties')
    const logFile = join(supervised.folder, 'server.log')
    await writeFile(configFile, buildConfig(supervised.folder, places, secured))
    await format(program, configFile, secured)
    const start = (): Promise<void> =>
      supervised.start(
        {
          command: program.java,
          args: [...javaOptions, '-cp', program.classPath, 'kafka.Kafka', configFile],
          env: {},
          logFile,
          // An orderly shutdown would try to move its partitions to other nodes, which do not exist.
          stopSignal: 'SIGKILL',
        },
        async () => void (await describeCluster([broker])),
        readyMsMax,
      )
    await start()
    return {
      brokers: [broker],
      sasl: secured === undefined ? [] : [sasl],
      tls: secured === undefined ? [] : [tls],
      saslTls: secured === undefined ? [] : [saslTls],
      version: await readVersionFromLog(logFile),
      stop: () => supervised.stop('SIGKILL'),
      start,
      end: supervised.end,
      [Symbol.asyncDispose]: supervised.end,
    }
  } catch (error) {
    await supervised.end()
    throw error
  }
}

async function findPlace(): Promise<string> {
  return `127.0.0.1:${await findFreePort()}`
}

type Places = readonly [broker: string, controller: string, sasl: string, tls: string, saslTls: string]

async function format(
  { java, classPath }: KafkaProgram,
  configFile: string,
  secured: KafkaSecurity | undefined,
): Promise<void> {
  const clusterId = randomBytes(16).toString('base64url')
  const login = secured && `[name=${secured.user},password=${secured.password}]`
  const users = secured === undefined ? [] : ['256', '512'].map((size) => `SCRAM-SHA-${size}=${login}`)
  // One argument: an id that starts with a hyphen would be read as another option.
  const args = ['format', `--cluster-id=${clusterId}`, '--config', configFile]
  const added = users.flatMap((user) => ['--add-scram', user])
  const tool = [...javaOptions, '-cp', classPath, 'kafka.tools.StorageTool', ...args, ...added]
  await runCommand(java, tool, { env: {} })
}

function buildConfig(
  folder: string,
  [broker, controller, sasl, tls, saslTls]: Places,
  secured: KafkaSecurity | undefined,
): string {
  const more = secured === undefined ? '' : `,SASL://${sasl},TLS://${tls},BOTH://${saslTls}`
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@${controller}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: `PLAINTEXT://${broker},CONTROLLER://${controller}${more}`,
    'advertised.listeners': `PLAINTEXT://${broker}${more}`,
    'log.dirs': join(folder, 'data'),
    'offsets.topic.replication.factor': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // Few partitions: each costs files and time at the first consumer group or transaction.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.num.partitions': 4,
    // Many clusters forbid it, so code that relies on it must fail in the tests.
    'auto.create.topics.enable': false,
    // The first member of a group need not wait for others: a test starts its members itself.
    'group.initial.rebalance.delay.ms': 0,
    // Compacted topics are compacted soon.
    'log.cleaner.backoff.ms': 500,
    ...(secured !== undefined && describeSecurity(secured)),
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

function describeSecurity({ user, password, certificate, key }: KafkaSecurity): Record<string, string> {
  const modules = 'org.apache.kafka.common.security'
  const plain = `${modules}.plain.PlainLoginModule required user_${user}="${password}";`
  const scram = `${modules}.scram.ScramLoginModule required;`
  // A line break in a value of a properties file is written as \n.
  const oneLine = (pem: string): string => pem.replaceAll('\n', '\\n')
  return {
    'listener.security.protocol.map':
      'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,BOTH:SASL_SSL',
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    ...Object.fromEntries(
      ['sasl', 'both'].flatMap((listener) => [
        [`listener.name.${listener}.plain.sasl.jaas.config`, plain],
        [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`, scram],
        [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`, scram],
      ]),
    ),
    ...Object.fromEntries(
      ['tls', 'both'].flatMap((listener) => [
        [`listener.name.${listener}.ssl.keystore.type`, 'PEM'],
        [`listener.name.${listener}.ssl.keystore.certificate.chain`, oneLine(certificate)],
        [`listener.name.${listener}.ssl.keystore.key`, oneLine(key)],
      ]),
    ),
  }
}

/** Reads the version that the broker logs at its start: the actual version, not the requested one. */
async function readVersionFromLog(logFile: string): Promise<string> {
  return /Kafka version: (\S+)/.exec(await readFile(logFile, 'utf8'))?.[1] ?? 'unknown'
}
