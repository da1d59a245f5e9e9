import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findFreePort } from '../process/free-port.ts'
import { runCommand } from '../process/run-command.ts'
import { supervise } from '../process/supervise.ts'
import { describeCluster } from './describe-cluster.ts'
import { type KafkaProgram, resolveKafka } from './jars.ts'

export type KafkaServer = Readonly<{ brokers: readonly string[]; version: string; end(): Promise<void> }>

const readyMsMax = 90_000

// A small node that starts fast: the simplest garbage collector, and only the first level of compilation.
const javaOptions = ['-Xms128m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']

/** Starts one node that is broker and controller, without ZooKeeper. */
export async function startKafka(): Promise<KafkaServer> {
  const program = await resolveKafka()
  const supervised = await supervise('kafka')
  try {
    const [brokerPort, controllerPort] = await Promise.all([findFreePort(), findFreePort()])
    const broker = `127.0.0.1:${brokerPort}`
    const configFile = join(supervised.folder, 'server.properties')
    const logFile = join(supervised.folder, 'server.log')
    await writeFile(configFile, buildConfig(supervised.folder, broker, `127.0.0.1:${controllerPort}`))
    await format(program, configFile)
    await supervised.start(
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
    return { brokers: [broker], version: await readVersionFromLog(logFile), end: supervised.end }
  } catch (error) {
    await supervised.end()
    throw error
  }
}

async function format({ java, classPath }: KafkaProgram, configFile: string): Promise<void> {
  const clusterId = randomBytes(16).toString('base64url')
  const args = ['format', '--cluster-id', clusterId, '--config', configFile]
  await runCommand(java, [...javaOptions, '-cp', classPath, 'kafka.tools.StorageTool', ...args], { env: {} })
}

function buildConfig(folder: string, broker: string, controller: string): string {
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@${controller}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: `PLAINTEXT://${broker},CONTROLLER://${controller}`,
    'advertised.listeners': `PLAINTEXT://${broker}`,
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
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

/** Reads the version that the broker logs at its start: the actual version, not the requested one. */
async function readVersionFromLog(logFile: string): Promise<string> {
  return /Kafka version: (\S+)/.exec(await readFile(logFile, 'utf8'))?.[1] ?? 'unknown'
}
