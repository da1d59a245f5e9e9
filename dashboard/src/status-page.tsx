import type { Client, Health, ServerInfo } from '@redrive/client'
import { formatUptime } from './format-uptime.ts'
import { type ServerStatus, useServerStatus } from './server-status.ts'

const storeNames = {
  sqlite: 'SQLite file',
  memory: 'memory (lost when the server stops)',
  postgres: 'PostgreSQL',
} as const satisfies Record<ServerInfo['store']['kind'], string>

/** Shows whether the server works, its version, its store and its uptime. */
export function StatusPage({ client }: { client: Client }) {
  const status = useServerStatus(client)
  return (
    <>
      <header>
        <h1>Redrive</h1>
        <nav aria-label="More about this server">
          <a href="/docs">API</a>
          <a href="/health">Health</a>
          <a href="/metrics">Metrics</a>
        </nav>
      </header>
      <main>
        <Headline status={status} />
        {status.kind === 'reachable' && <Facts info={status.info} />}
        {status.kind === 'reachable' && <FailedChecks health={status.health} />}
      </main>
    </>
  )
}

function Headline({ status }: { status: ServerStatus }) {
  const [tone, text] = describeStatus(status)
  return (
    <p role="status" className={`headline ${tone}`}>
      <span aria-hidden="true" className="lamp" />
      {text}
    </p>
  )
}

function describeStatus(status: ServerStatus): readonly [tone: 'quiet' | 'good' | 'bad', text: string] {
  switch (status.kind) {
    case 'loading':
      return ['quiet', 'Connecting to the server…']
    case 'unreachable':
      return ['bad', `The server does not answer: ${status.reason}`]
    case 'reachable':
      return describeHealth(status.health.status)
  }
}

function describeHealth(status: Health['status']): [tone: 'good' | 'bad', text: string] {
  switch (status) {
    case 'pass':
      return ['good', 'The server is up.']
    case 'warn':
      return ['bad', 'The server is up, but a check warns.']
    case 'fail':
      return ['bad', 'The server is up, but a check fails.']
  }
}

function Facts({ info }: { info: ServerInfo }) {
  return (
    <dl>
      <dt>Version</dt>
      <dd>{info.version}</dd>
      <dt>Store</dt>
      <dd>{storeNames[info.store.kind]}</dd>
      <dt>Up for</dt>
      <dd>
        {formatUptime(info.uptime_seconds)}, since{' '}
        <time dateTime={info.started_at}>{formatLocalTime(info.started_at)}</time>
      </dd>
    </dl>
  )
}

function FailedChecks({ health }: { health: Health }) {
  const failed = Object.entries(health.checks).flatMap(([name, checks]) =>
    checks
      .filter((check) => check.status !== 'pass')
      .map((check) => ({ name, output: check.output ?? 'no reason given' })),
  )
  if (failed.length === 0) return null
  return (
    <section aria-labelledby="failed-checks">
      <h2 id="failed-checks">Failed checks</h2>
      <ul>
        {failed.map(({ name, output }) => (
          <li key={name}>
            <code>{name}</code> {output}
          </li>
        ))}
      </ul>
    </section>
  )
}

function formatLocalTime(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
}
