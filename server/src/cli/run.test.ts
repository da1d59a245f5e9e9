import { expect, it } from 'vitest'
import { run } from './run.ts'

async function runInTestFolder(args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const stdout: string[] = []
  const stderr: string[] = []
  const code = await run(args, {
    environment: {},
    folder: import.meta.dirname,
    print: (line) => stdout.push(line),
    report: (line) => stderr.push(line),
  })
  return { code, stdout: stdout.join('\n'), stderr: stderr.join('\n') }
}

it.each([
  [['srve'], 'there is no command srve; did you mean serve?'],
  [['serve', '--log-levle', 'x'], 'there is no flag --log-levle; did you mean --log-level?'],
  [['serve', '--port', 'http'], 'port (from --port) is "http", but must be'],
  [['--port', '1', 'serve'], 'the flag --port must follow the command'],
  [['serve', '--port'], 'the flag --port needs a value'],
  [['serve', 'now'], 'the command is followed by arguments that are not flags'],
  [['serve', '--config', 'gone.yaml'], 'the settings file gone.yaml (from --config) cannot be read'],
  [
    ['serve', '--store', 'mysql://db/x'],
    'the store "mysql://db/x" cannot be used: "mysql:" is not a kind of store',
  ],
])('the arguments %j are bad usage', async (args, sentence) => {
  const { code, stdout, stderr } = await runInTestFolder(args)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr.split('\n')[0]).toContain(`redrive: ${sentence}`)
})

it.each([
  [['serve', '--vault-tokn=hush']],
  [['serve', '--vault-token', 'vault:hush']],
  [['serve', '--store', 'postgres://app:hush@db']],
  [['postgres://app:hush@db/queues']],
  [['serve', '--store', 'host=db user=app password=hush']],
  [['serve', '--store', 'u:hush@db/queues']],
  [['serve', '--store', 'postgress://app:hush@db/queues']],
  [['serve', '--port', 'postgres://app:hush@db/queues']],
  [['migrate', '--store', 'a.db', '--store-password', 'hush']],
  [
    [
      'migrate',
      '--store',
      'vault:secret/x#y',
      '--vault-address',
      'http://127.0.0.1:1',
      '--vault-token',
      'hush',
    ],
  ],
])('the messages of %j do not show its secret', async (args) => {
  const { code, stdout, stderr } = await runInTestFolder(args)
  expect(code).not.toBe(0)
  expect(stderr).toMatch(/^redrive: /)
  expect(stdout + stderr).not.toContain('hush')
})

it('a Vault that cannot be reached is a failure, not bad usage', async () => {
  const vault = ['--vault-address', 'http://127.0.0.1:1', '--vault-token', 'hush']
  const { code, stderr } = await runInTestFolder(['migrate', '--store', 'vault:secret/x#y', ...vault])
  expect(code).toBe(1)
  expect(stderr).toContain('Vault at http://127.0.0.1:1 cannot be reached')
})
