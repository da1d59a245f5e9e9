import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../process/free-port.ts'
import { runCommand } from '../process/run-command.ts'
import { supervise } from '../process/supervise.ts'
import { clusterOf } from './cluster.ts'
import { type KafkaProgram, kafkaProgram } from './jars.ts'

export type KafkaServer = Readonly<{ brokers: readonly string[]; version: string; end(): Promise<void> }>

const readyMsMax = 90_000

// One small node that starts fast: the simplest collector, and no time spent on optimizing code.
const javaOptions = ['-Xms128m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']

/** One node that is broker and controller both, with no ZooKeeper. */
export async function startKafka(): Promise<KafkaServer> {
  const program = await kafkaProgram()
  const supervised = await supervise('kafka')
  try {
    const [brokerPort, controllerPort] = await Promise.all([freePort(), freePort()])
    const broker = `127.0.0.1:${brokerPort}`
    const configFile = join(supervised.folder, 'server.properties')
    const logFile = join(supervised.folder, 'server.log')
    await writeFile(configFile, config(supervised.folder, broker, `127.0.0.1:${controllerPort}`))
    await format(program, configFile)
    await supervised.start(
      {
        command: program.java,
        args: [...javaOptions, '-cp', program.classPath, 'kafka.Kafka', configFile],
        env: {},
        logFile,
        // An orderly shutdown would hand its partitions over to other nodes, and there are none.
        stopSignal: 'SIGKILL',
      },
      async () => void (await clusterOf([broker])),
      readyMsMax,
    )
    return { brokers: [broker], version: await versionInLog(logFile), end: supervised.end }
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

function config(folder: string, broker: string, controller: string): string {
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
    // Few, because each costs files and time when a first group or transaction comes.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.num.partitions': 4,
    // Many clusters forbid it, so what needs it must not pass here.
    'auto.create.topics.enable': false,
    // A first member of a group need not wait for others that a test would have started by itself.
    'group.initial.rebalance.delay.ms': 0,
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

/** Told by the broker itself at its start, so that the closing summary does not repeat our wish. */
async function versionInLog(logFile: string): Promise<string> {
  return /Kafka version: (\S+)/.exec(await readFile(logFile, 'utf8'))?.[1] ?? 'unknown'
}
