import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { announce } from '../install/announce.ts'
import { getOrFill } from '../install/cache.ts'
import { findProgram } from '../install/find-program.ts'
import { runCommand } from '../process/run-command.ts'
import { ServiceUnavailable } from '../service.ts'

/** The newest version that the Kafka client supports. Its brokers need Java 17. */
export const kafkaVersion = '4.2.1'
const javaVersionMin = 17
const pluginVersion = '3.8.1'
/** Kafka logs through slf4j 1.7, and only its distribution contains a logger implementation. */
const slf4jVersion = '1.7.36'

export type KafkaProgram = Readonly<{ java: string; classPath: string }>

/** Resolves Apache Kafka with Maven into the cache, and returns its class path. */
export async function resolveKafka(): Promise<KafkaProgram> {
  const java = await requireJava()
  const folder = await getOrFill(`kafka-${kafkaVersion}`, resolveJars)
  return { java, classPath: join(folder, '*') }
}

async function requireJava(): Promise<string> {
  const java = process.env.JAVA_HOME ? join(process.env.JAVA_HOME, 'bin', 'java') : await findProgram('java')
  if (java === undefined)
    throw new ServiceUnavailable(`Kafka needs Java ${javaVersionMin} or later, and java is not installed`)
  const answer = await runCommand(java, ['--version'], { msMax: 30_000 })
  const version = Number(/\s(\d+)/.exec(answer)?.[1])
  if (version >= javaVersionMin) return java
  throw new ServiceUnavailable(
    `Kafka ${kafkaVersion} needs Java ${javaVersionMin} or later, and ${java} is ${version}`,
  )
}

async function resolveJars(folder: string): Promise<void> {
  if (!(await findProgram('mvn'))) {
    throw new ServiceUnavailable('Kafka is resolved with Maven, and mvn is not installed')
  }
  announce(`resolving Apache Kafka ${kafkaVersion} with Maven`)
  const project = join(folder, 'project')
  await mkdir(project)
  await writeFile(join(project, 'pom.xml'), buildPom())
  const goal = `org.apache.maven.plugins:maven-dependency-plugin:${pluginVersion}:copy-dependencies`
  const options = ['-DincludeScope=runtime', `-DoutputDirectory=${folder}`]
  await runCommand('mvn', ['--batch-mode', '--quiet', goal, ...options], { cwd: project })
  await rm(project, { recursive: true })
  const jars = await readdir(folder)
  if (!jars.includes(`kafka_2.13-${kafkaVersion}.jar`))
    throw new ServiceUnavailable('Maven resolved no Kafka broker')
}

function buildPom(): string {
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>redrive</groupId>
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${kafkaVersion}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>${slf4jVersion}</version>
    </dependency>
  </dependencies>
</project>
`
}
