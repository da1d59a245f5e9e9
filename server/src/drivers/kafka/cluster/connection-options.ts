import { isIP } from 'node:net'
import type { Admin, SASLMechanismValue } from '@platformatic/kafka'
import type { KafkaSasl, KafkaTls, ReadText } from '../../../core/kafka/cluster.ts'
import type { Cluster } from '../parts.ts'

export type ConnectionOptions = ConstructorParameters<typeof Admin>[0]

/** Retries within a call are short: the loop of the cluster retries with growing pauses. */
const retries = 2
const retryDelayMs = 250
const connectTimeoutMs = 5_000
const requestTimeoutMs = 30_000
const metadataMsMax = 60_000

export async function readConnectionOptions({ brokers, tls, sasl }: Cluster): Promise<ConnectionOptions> {
  return {
    clientId: 'redrive',
    bootstrapBrokers: [...brokers],
    retries,
    retryDelay: retryDelayMs,
    connectTimeout: connectTimeoutMs,
    requestTimeout: requestTimeoutMs,
    metadataMaxAge: metadataMsMax,
    autocreateTopics: false,
    ...(tls !== null && (await readTls(tls, brokers))),
    ...(sasl !== null && { sasl: await readSasl(sasl) }),
  }
}

async function readTls(
  { ca, cert, key, serverName }: KafkaTls<ReadText>,
  brokers: readonly string[],
): Promise<Pick<ConnectionOptions, 'tls' | 'tlsServerName'>> {
  const [caText, certText, keyText] = await Promise.all([ca?.(), cert?.(), key?.()])
  return {
    tls: {
      ...(caText !== undefined && { ca: caText }),
      ...(certText !== undefined && { cert: certText }),
      ...(keyText !== undefined && { key: keyText }),
    },
    // A server name is a host name, never an address.
    tlsServerName: serverName ?? !brokers.some((broker) => isIP(broker.replace(/:\d+$/, '')) !== 0),
  }
}

async function readSasl({
  mechanism,
  username,
  password,
}: KafkaSasl<ReadText>): Promise<NonNullable<ConnectionOptions['sasl']>> {
  return { mechanism: mechanism.toUpperCase() as SASLMechanismValue, username, password: await password() }
}
