/** The files in examples/monitoring/, checked by Prometheus itself and against a running server. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { findFreePort } from '../../../tools/services/process/free-port.ts'
import { runCommand } from '../../../tools/services/process/run-command.ts'
import { type Supervised, supervise } from '../../../tools/services/process/supervise.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer } from '../http/store-server.ts'

const prometheus = await requireService('prometheus')
const folder = fileURLToPath(new URL('../../../examples/monitoring/', import.meta.url))
const read = (name: string) => readFile(join(folder, name), 'utf8')

type Panel = Readonly<{ targets?: readonly Readonly<{ expr: string }>[] }>
const readPanels = async (): Promise<readonly string[]> => {
  const { panels } = JSON.parse(await read('grafana-dashboard.json')) as { panels: readonly Panel[] }
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
}
const readRules = async (): Promise<readonly string[]> =>
  [...(await read('redrive-rules.yml')).matchAll(/expr: (?:>-)?([\s\S]*?)\n\s+(?:for|labels):/g)].map(
    ([, expr = '']) => expr,
  )

/** Names of metrics in an expression; labels and functions have other names. */
function listNames(expression: string): readonly string[] {
  const prefixes = /\b(?:redrive|worker|kafka|nodejs|process|dead_job|queued_job)_[a-z0-9_]+\b(?!\s*=)/g
  const isLabel = (name: string) => name === 'worker_instance'
  return [...expression.matchAll(prefixes)].map(([name]) => name).filter((name) => !isLabel(name))
}

const settings = { 'workers.check_interval': 100, 'redis.url': 'redis://127.0.0.1:1' } as const

describeServer('the files for monitoring', 'SQLite memory', settings, (server) => {
  const readDocumented = async () =>
    [
      ...(await readFile(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')).matchAll(
        /^\| `(\w+)`/gm,
      ),
    ].map(([, name = '']) => name)

  it('every metric in the rules, the dashboard and the check of Datadog exists', async () => {
    // server/test/watching/metrics.test.ts compares this list with running servers.
    const known = new Set(await readDocumented())
    const base = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '')
    const [rules, panels] = [await readRules(), await readPanels()]
    expect(rules.length).toBeGreaterThan(20)
    expect(panels.length).toBeGreaterThan(30)
    const used = [...rules, ...panels].flatMap(listNames)
    expect(used.filter((name) => !known.has(name) && !known.has(base(name)))).toEqual([])
    const datadog = [...(await read('datadog-openmetrics.yaml')).matchAll(/^ {6}- (\w+):/gm)]
    expect(datadog.length).toBeGreaterThan(20)
    const missing = datadog.map(([, name = '']) => name)
    expect(missing.filter((name) => !known.has(name) && !known.has(`${name}_total`))).toEqual([])
  })

  it('docs/monitoring.md names the standard alerts and every file', async () => {
    const page = await readFile(new URL('../../../docs/monitoring.md', import.meta.url), 'utf8')
    const standard =
      /name: redrive-standard([\s\S]*?)\n {2}- name:/.exec(await read('redrive-rules.yml'))?.[1] ?? ''
    const alerts = [...standard.matchAll(/alert: (\w+)/g)].map(([, name]) => name)
    expect(alerts).toHaveLength(5)
    for (const name of alerts) expect(page).toContain(`\`${name}\``)
  })

  it(
    'promtool accepts the configuration, the rules and each query of the dashboard',
    needs(prometheus),
    async () => {
      await runCommand(prometheus.promtool, ['check', 'config', join(folder, 'prometheus.yml')])
      await runCommand(prometheus.promtool, ['check', 'rules', join(folder, 'redrive-rules.yml')])
      const supervised = await supervise('promtool')
      try {
        const rules = (await readPanels()).map((expr, at) => ({
          record: `panel_${at}`,
          expr: expr.replaceAll('$queue', '.*'),
        }))
        const path = join(supervised.folder, 'panels.json')
        await writeFile(path, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
        await runCommand(prometheus.promtool, ['check', 'rules', path])
      } finally {
        await supervised.end()
      }
    },
  )

  it('the rules fire and clear at their times', { ...needs(prometheus), timeout: 120_000 }, async () => {
    const output = await runCommand(prometheus.promtool, ['test', 'rules', 'redrive-rules.test.yml'], {
      cwd: folder,
    })
    expect(output).toContain('SUCCESS')
  })

  it('a real Prometheus scrapes the server, and its rules fire and clear', needs(prometheus), async () => {
    await server.call('POST', '/api/v1/queues', {
      name: 'escrow.dlq',
      policy: { letter_class: 'financial' },
    })
    await server.call('POST', '/api/v1/queues', { name: 'mail.dlq' })
    const capture = async (queue: string) =>
      server.call('POST', '/api/v1/letters', {
        queue,
        letters: [{ original_topic: 't', original_value: 'x' }],
      })
    const { letters } = await capture('escrow.dlq')
    await capture('mail.dlq')
    const heartbeat = (changes: object) =>
      server.call('POST', '/api/v1/workers/heartbeat', {
        heartbeats: [{ type: 'payout', instance_id: 'one', ...changes }],
      })
    // For Prometheus, a heartbeat at a time in the past is one that is missing since.
    await server.setClock({ now: new Date(Date.now() - 120_000).toISOString() })
    await heartbeat({})
    const supervised = await supervise('prometheus')
    try {
      const api = await startPrometheus(supervised, server.url)
      await untilFiring(api, [
        'DLQFinancial',
        'DLQNonFinancial',
        'RedriveRedisDown',
        'WorkerHeartbeatMissing',
      ])
      await server.call('POST', '/api/v1/letters/discard', { ids: [letters[0].id], reason: 'test' })
      await heartbeat({ status: 'STOPPED' })
      await untilFiring(api, ['DLQNonFinancial', 'RedriveRedisDown'])
    } finally {
      await supervised.end()
      await server.setClock({ resume: true })
    }
  })
})

/** Starts Prometheus with the rules, without their hold times, which promtool tests. */
async function startPrometheus(supervised: Supervised, target: string): Promise<string> {
  const { folder: place } = supervised
  const port = await findFreePort()
  const api = `http://127.0.0.1:${port}`
  const rules = (await read('redrive-rules.yml')).replaceAll(/^(\s+for:).*$/gm, '$1 0s')
  const config = (await read('prometheus.yml'))
    .replaceAll('15s', '500ms')
    .replace('127.0.0.1:8080', new URL(target).host)
  await writeFile(join(place, 'redrive-rules.yml'), rules)
  await writeFile(join(place, 'prometheus.yml'), config)
  const process = {
    command: prometheus.prometheus,
    args: [
      `--config.file=${join(place, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(place, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    env: {},
    logFile: join(place, 'prometheus.log'),
    stopSignal: 'SIGTERM',
  } as const
  const isReady = async () => {
    const { status } = await fetch(`${api}/-/ready`)
    if (status !== 200) throw new Error(`Prometheus answers ${status}`)
  }
  await supervised.start(process, isReady, 60_000)
  return api
}

/** Rejects with the alerts that fire instead. */
async function untilFiring(api: string, names: readonly string[]): Promise<void> {
  await pollUntil(
    () => readFiring(api),
    (firing) => JSON.stringify(firing) === JSON.stringify(names),
    60_000,
  )
}

async function readFiring(api: string): Promise<readonly string[]> {
  const response = await fetch(`${api}/api/v1/alerts`)
  const { data } = (await response.json()) as {
    data: { alerts: { state: string; labels: { alertname: string } }[] }
  }
  const firing = data.alerts.filter(({ state }) => state === 'firing')
  return [...new Set(firing.map(({ labels }) => labels.alertname))].toSorted()
}
