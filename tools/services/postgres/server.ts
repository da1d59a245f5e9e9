import { randomBytes } from 'node:crypto'
import { chown, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPgClient } from '../../../server/src/storage/postgres/connection/tls-connection.ts'
import { findFreePort } from '../process/free-port.ts'
import { runCommand } from '../process/run-command.ts'
import { type Supervised, supervise } from '../process/supervise.ts'
import { checkCanEnter, findUnprivilegedUser, type User } from '../process/unprivileged-user.ts'
import { linkBinaries } from './link-binaries.ts'

/** A private server, for tests that stop, kill or restart the database. */
export interface PostgresServer extends AsyncDisposable {
  readonly url: string
  /**
   * `immediate` acts like a crash: no checkpoint, sessions are ended; the next start recovers from the WAL.
   * `kill` is SIGKILL.
   */
  stop(mode?: StopMode): Promise<void>
  /** Starts again on the same port with the same data. */
  start(): Promise<void>
  /**
   * Writes files such as certificates to the data folder, readable only for the server. A running server uses
   * them after `select pg_reload_conf()`.
   */
  writeFiles(files: ServerFiles): Promise<void>
  /** Stops the server and removes its data. Can be called twice. */
  end(): Promise<void>
}

export type StopMode = 'fast' | 'immediate' | 'kill'
const stopSignals = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const

/** Contents by name. */
export type ServerFiles = Readonly<Record<string, string>>

const readyMsMax = 60_000
const portAttemptsMax = 3

// The tests check durability, so every setting that a production server needs for it stays on.
const durableSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  shared_buffers: '128MB',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  timezone: 'UTC',
}

export type PostgresOptions = Readonly<{
  /** The folder with PostgreSQL's programs. Default: the npm package. */
  programs?: string
  /** Added to the default settings; a setting with the same name replaces the default. */
  settings?: Readonly<Record<string, string>>
  /** Written to the data folder before the first start. */
  files?: ServerFiles
  /** Default: a random one. */
  password?: string
}>

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const prepared = await preparePostgres(options, createCluster)
  return launchPostgres(prepared, options.settings)
}

/** A data folder and the programs for it. Nothing runs yet. */
export type PreparedPostgres = Readonly<{
  supervised: Supervised
  bin: string
  password: string
  user: User | undefined
}>

type Prepare = Readonly<{ folder: string; bin: string; password: string; user: User | undefined }>

/** `createData` creates the folder `data` in the given folder. */
export async function preparePostgres(
  options: PostgresOptions,
  createData: (prepare: Prepare) => Promise<void>,
): Promise<PreparedPostgres> {
  const user = await findUnprivilegedUser()
  const supervised = await supervise('postgres')
  try {
    await checkCanEnter(user, supervised.folder)
    const bin = options.programs ?? (await linkBinaries(supervised.folder))
    const password = options.password ?? randomBytes(12).toString('hex')
    await createData({ folder: supervised.folder, bin, password, user })
    await writeDataFiles(join(supervised.folder, 'data'), options.files ?? {}, user)
    return { supervised, bin, password, user }
  } catch (error) {
    await supervised.end()
    throw error
  }
}

export async function launchPostgres(
  { supervised, bin, password, user }: PreparedPostgres,
  settings: PostgresOptions['settings'] = {},
): Promise<PostgresServer> {
  try {
    const launch = { bin, password, user, settings: { ...durableSettings, ...settings } }
    const port = await startOnFreePort(supervised, launch)
    return {
      url: toUrl(port, password),
      stop: async (mode = 'fast') => supervised.stop(stopSignals[mode]),
      start: async () => startServer(supervised, launch, port),
      writeFiles: (files) => writeDataFiles(join(supervised.folder, 'data'), files, user),
      end: supervised.end,
      [Symbol.asyncDispose]: supervised.end,
    }
  } catch (error) {
    await supervised.end()
    throw error
  }
}

/** Connects to the server and returns its version. */
export async function readPostgresVersion(url: string): Promise<string> {
  const client = createPgClient(url, { connectionTimeoutMillis: 5_000 })
  // A starting server may close an established connection; the query then fails with the same error.
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    return rows[0]?.server_version.split(' ')[0] ?? 'unknown'
  } finally {
    await client.end()
  }
}

export async function createCluster({ folder, bin, password, user }: Prepare): Promise<void> {
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  await mkdir(data, { mode: 0o700 })
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (user !== undefined) {
    await chown(data, user.uid, user.gid)
    await chown(passwordFile, user.uid, user.gid)
  }
  const args = [
    `--pgdata=${data}`,
    '--username=redrive',
    `--pwfile=${passwordFile}`,
    // Plain text over loopback: the stronger methods cost milliseconds of CPU per connection.
    '--auth=password',
    '--encoding=UTF8',
    ...(await chooseLocale(bin)),
    // Applies only to the creation of the empty cluster. The server itself runs with fsync on.
    '--no-sync',
  ]
  await runCommand(join(bin, 'initdb'), args, { cwd: folder, env: { LC_ALL: 'C' }, ...toIds(user) })
}

async function writeDataFiles(data: string, files: ServerFiles, user: User | undefined): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    // Replaced in one step: the server must never read half of a certificate.
    const path = join(data, name)
    const written = `${path}.new`
    // PostgreSQL refuses a key that other users can read.
    await writeFile(written, content, { mode: 0o600 })
    if (user !== undefined) await chown(written, user.uid, user.gid)
    await rename(written, path)
  }
}

/**
 * Sorts text linguistically like most installations, so that code that relies on byte order fails in the
 * tests. Builds without ICU can only sort by bytes.
 */
async function chooseLocale(bin: string): Promise<string[]> {
  const built = await runCommand(join(bin, 'pg_config'), ['--configure']).catch(() => '')
  if (built.includes('--without-icu')) return ['--locale=C.UTF-8']
  return ['--locale-provider=icu', '--icu-locale=en-US', '--locale=C']
}

type Launch = Readonly<{
  bin: string
  password: string
  user: User | undefined
  settings: Readonly<Record<string, string>>
}>

async function startOnFreePort(supervised: Supervised, launch: Launch): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort()
    try {
      await startServer(supervised, launch, port)
      return port
    } catch (error) {
      const isPortTaken = error instanceof Error && error.message.includes('Address already in use')
      if (!isPortTaken || attempt === portAttemptsMax) throw error
    }
  }
}

async function startServer(supervised: Supervised, launch: Launch, port: number): Promise<void> {
  const { bin, password, user, settings } = launch
  const options = Object.entries({ ...settings, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  await supervised.start(
    {
      command: join(bin, 'postgres'),
      args: ['-D', join(supervised.folder, 'data'), ...options],
      env: { LC_ALL: 'C' },
      user,
      logFile: join(supervised.folder, 'server.log'),
      stopSignal: 'SIGINT',
    },
    async () => void (await readPostgresVersion(toUrl(port, password))),
    readyMsMax,
  )
}

function toUrl(port: number, password: string): string {
  return `postgres://redrive:${password}@127.0.0.1:${port}/postgres`
}

function toIds(user: User | undefined): { uid?: number; gid?: number } {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid }
}
