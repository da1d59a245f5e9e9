import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository, runProgram } from '../../../tools/run-program.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { openTestKafka, type TestKafka } from '../kafka/test-kafka.ts'
import { parseEnvelope, readUntil, waitUntil } from './test-worker.ts'

const kafka = await requireService('privateKafka')

describe('examples/kafka-worker', needs(kafka), () => {
  let folder: string
  let test: TestKafka
  let child: ChildProcess | undefined
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    // Installed like from the registry: the built package, with the Kafka client beside it.
    folder = await mkdtemp(join(tmpdir(), 'redrive-example-'))
    const installed = join(folder, 'node_modules/@redrive/client')
    await mkdir(installed, { recursive: true })
    await mkdir(join(folder, 'node_modules/@platformatic'))
    const args = ['-p', 'client/tsconfig.build.json', '--noEmitOnError', '--outDir', join(installed, 'dist')]
    expect(await runProgram('tsc', args)).toBe(0)
    await cp(join(repository, 'client/package.json'), join(installed, 'package.json'))
    await cp(join(repository, 'examples/kafka-worker'), folder, { recursive: true })
    const kafkaClient = 'node_modules/@platformatic/kafka'
    await symlink(join(repository, kafkaClient), join(folder, kafkaClient))
  }, 120_000)
  afterAll(async () => {
    child?.kill('SIGKILL')
    await test.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('processes commands, writes invalid ones to the dead-letter topic, and stops at SIGTERM', {
    timeout: 60_000,
  }, async () => {
    const topic = await test.createTopic('escrow.commands', 2)
    let output = ''
    child = spawn(process.execPath, ['main.ts', 'payout-executor'], {
      cwd: folder,
      env: { ...process.env, KAFKA_BROKERS: kafka.brokers.join(',') },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text) => {
        output += text
      })
    const command = { event_id: 'e1', event_type: 'EXECUTE_PAYOUT', deal_id: 'deal_1', payload: {} }
    await test.send([
      { topic, key: 'deal_1', value: JSON.stringify(command) },
      { topic, key: 'deal_2', value: JSON.stringify({ ...command, event_id: undefined }) },
    ])
    const [record] = await readUntil(test, `${topic}.dlq`, 1)
    expect(parseEnvelope(record)).toMatchObject({
      original_topic: 'escrow.commands',
      original_key: 'deal_2',
      error_details: { exception_class: 'ValidationError', message: 'event_id is missing' },
      worker_instance: 'payout-executor-1',
      consumer_group: 'payout-executor',
    })
    await waitUntil(() => output.includes('payout-executor: EXECUTE_PAYOUT e1, attempt 1'))
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    expect([code, output]).toEqual([0, expect.stringContaining('"processed":1,"failed":1,"deadLettered":1')])
    expect(await test.committed('payout-executor', topic)).toContain(2)
  })
})
