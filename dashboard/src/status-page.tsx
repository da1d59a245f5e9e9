import type { Client, Health, ServerInfo } from '@redrive/client'
import { formatUptime } from './format-uptime.ts'
import { type ServerStatus, useServerStatus } from './server-status.ts'

const storeNames = {
  sqlite: 'SQLite file',
  memory: 'memory (nothing is kept)',
  postgres: 'PostgreSQL',
} as const satisfies Record<ServerInfo['store']['kind'], string>

/** Says whether the server is up, and what it is. */
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
        {status.kind === 'answered' && <Facts info={status.info} />}
        {status.kind === 'answered' && <Faults health={status.health} />}
      </main>
    </>
  )
}

function Headline({ status }: { status: ServerStatus }) {
  const [tone, text] = headlineOf(status)
  return (
    <p role="status" className={`headline ${tone}`}>
      <span aria-hidden="true" className="lamp" />
      {text}
    </p>
  )
}

function headlineOf(status: ServerStatus): readonly [tone: 'quiet' | 'good' | 'bad', text: string] {
  switch (status.kind) {
    case 'asking':
      return ['quiet', 'Asking the server…']
    case 'silent':
      return ['bad', `The server does not answer: ${status.reason}`]
    case 'answered':
      return status.health.status === 'pass'
        ? ['good', 'The server is up.']
        : ['bad', 'The server is up, but cannot do its work.']
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
        <time dateTime={info.started_at}>{localTime(info.started_at)}</time>
      </dd>
    </dl>
  )
}

function Faults({ health }: { health: Health }) {
  const faults = Object.entries(health.checks).flatMap(([name, checks]) =>
    checks
      .filter((check) => check.status === 'fail')
      .map((check) => ({ name, output: check.output ?? 'no reason given' })),
  )
  if (faults.length === 0) return null
  return (
    <section aria-labelledby="faults">
      <h2 id="faults">What fails</h2>
      <ul>
        {faults.map(({ name, output }) => (
          <li key={name}>
            <code>{name}</code> {output}
          </li>
        ))}
      </ul>
    </section>
  )
}

function localTime(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
}
