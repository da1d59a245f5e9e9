import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KnownError } from '../../errors.ts'
import { type LoadedSettings, loadSettings, type SettingsSources } from './load-settings.ts'
import { describeOrigin } from './origin.ts'
import { settingsTable, toEnvironmentName, toFlag } from './settings.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-settings-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

type Sources = Partial<SettingsSources> & { yaml?: string }

function load({ yaml, ...sources }: Sources = {}): LoadedSettings {
  if (yaml !== undefined) writeFileSync(join(folder, 'redrive.yaml'), yaml)
  return loadSettings({ flags: {}, environment: {}, folder, ...sources })
}

function readErrorMessage(sources: Sources): string {
  try {
    load(sources)
  } catch (error) {
    if (error instanceof KnownError && error.code === 'SETTING_INVALID') return error.message
    throw error
  }
  throw new Error('the settings are valid')
}

describe('loadSettings', () => {
  it('settings have their defaults if nothing is given', () => {
    const { settings, origins } = load()
    expect(settings.host).toBe('127.0.0.1')
    expect(settings.port).toBe(8080)
    expect(settings.store).toBe('data/redrive.db')
    expect(settings['http.keep_alive_timeout']).toBe(125_000)
    expect(settings['sqlite.synchronous']).toBe('full')
    expect(origins.port).toEqual({ kind: 'default' })
  })

  it('a flag overrides the environment, and the environment overrides the file', () => {
    const yaml = 'host: from-file\nport: 1\nstore: from-file.db'
    const environment = { REDRIVE_PORT: '2', REDRIVE_STORE: 'from-environment.db' }
    const { settings, origins } = load({ yaml, environment, flags: { store: 'from-flag.db' } })
    expect([settings.host, settings.port, settings.store]).toEqual(['from-file', 2, 'from-flag.db'])
    expect([origins.host, origins.port, origins.store].map(describeOrigin)).toEqual([
      'redrive.yaml line 1',
      'REDRIVE_PORT',
      '--store',
    ])
  })

  it('shared variables set values too: out of bounds they are corrected, unreadable they are ignored', () => {
    const limits = (environment: Record<string, string>) => {
      const { settings } = load({ environment })
      return [settings['dlq.page_size_default'], settings['dlq.page_size_max'], settings['dlq.purge_limit']]
    }
    expect(limits({ DLQ_PAGE_SIZE_DEFAULT: '10', DLQ_PAGE_SIZE_MAX: ' 50 ' })).toEqual([10, 50, 1_000])
    expect(limits({ DLQ_PAGE_SIZE_DEFAULT: '0', DLQ_PAGE_SIZE_MAX: '501' })).toEqual([1, 500, 1_000])
    expect(limits({ DLQ_PAGE_SIZE_DEFAULT: 'ten', DLQ_PAGE_SIZE_MAX: '', DLQ_PURGE_LIMIT: '1.5' })).toEqual([
      25, 100, 1_000,
    ])
    expect(limits({ DLQ_PURGE_LIMIT: '7', REDRIVE_DLQ_PURGE_LIMIT: '8' })).toEqual([25, 100, 8])
    expect(load({ environment: { DLQ_PURGE_LIMIT: '7' } }).origins['dlq.purge_limit']).toEqual({
      kind: 'environment',
      variable: 'DLQ_PURGE_LIMIT',
    })
  })

  it('names in the file can be nested or written with dots', () => {
    const { settings } = load({ yaml: 'log:\n  level: debug\nlog.format: json\n' })
    expect([settings['log.level'], settings['log.format']]).toEqual(['debug', 'json'])
  })

  it('settings are read from the file that REDRIVE_CONFIG names', () => {
    writeFileSync(join(folder, 'other.yaml'), 'port: 3')
    const { settings } = load({ yaml: 'port: 1', environment: { REDRIVE_CONFIG: 'other.yaml' } })
    expect(settings.port).toBe(3)
  })

  it('a secret of digits keeps its leading zeros, and is not shown', () => {
    const { settings } = load({ yaml: 'vault.token: 00123' })
    expect(settings['vault.token']?.reveal()).toBe('00123')
    expect(JSON.stringify(settings)).not.toContain('00123')
  })

  it('an empty settings file is valid', () => {
    expect(load({ yaml: '# nothing yet\n' }).settings.port).toBe(8080)
  })

  it('an empty variable counts as not set', () => {
    expect(load({ environment: { REDRIVE_PORT: '' } }).settings.port).toBe(8080)
  })

  it('REDRIVE_TEST_ variables and foreign variables are ignored', () => {
    expect(load({ environment: { REDRIVE_TEST_POSTGRES: 'x', PATH: '/bin' } }).settings.port).toBe(8080)
  })

  it('the variables that Kubernetes sets for a service called redrive are ignored', () => {
    const links = {
      REDRIVE_SERVICE_HOST: '10.0.0.7',
      REDRIVE_SERVICE_PORT: '8080',
      REDRIVE_SERVICE_PORT_HTTP: '8080',
      REDRIVE_PORT: 'tcp://10.0.0.7:8080',
      REDRIVE_PORT_8080_TCP: 'tcp://10.0.0.7:8080',
      REDRIVE_PORT_8080_TCP_ADDR: '10.0.0.7',
      REDRIVE_HTTP_PORT: 'tcp://10.0.0.7:8080',
    }
    const environment = { KUBERNETES_SERVICE_HOST: '10.0.0.1', ...links }
    expect(load({ environment }).settings.port).toBe(8080)
    expect(readErrorMessage({ environment: links })).toContain('REDRIVE_SERVICE_HOST')
  })
})

describe('an unknown name', () => {
  it('the error for an unknown variable suggests the nearest one', () => {
    expect(readErrorMessage({ environment: { REDRIVE_PROT: '1' } })).toBe(
      'the environment variable REDRIVE_PROT is not a setting; did you mean REDRIVE_PORT?',
    )
    expect(readErrorMessage({ environment: { REDRIVE_HTTP_BODY_BYTE_MAX: '1' } })).toContain(
      'did you mean REDRIVE_HTTP_BODY_BYTES_MAX?',
    )
  })

  it('the error for an unknown name in the file has its line and the nearest name', () => {
    expect(readErrorMessage({ yaml: 'port: 1\nlog:\n  levle: debug\n' })).toBe(
      '"log.levle" in redrive.yaml line 3 is not a setting; did you mean log.level?',
    )
    expect(readErrorMessage({ yaml: 'level: debug' })).toContain('did you mean log.level?')
  })

  it('a name that resembles no setting gets no suggestion', () => {
    expect(readErrorMessage({ yaml: 'colour: red' })).toBe('"colour" in redrive.yaml line 1 is not a setting')
    expect(readErrorMessage({ yaml: 'toString: red' })).toBe(
      '"toString" in redrive.yaml line 1 is not a setting',
    )
  })
})

describe('an invalid value', () => {
  it('the error for an invalid value has its source, the value and the bounds', () => {
    expect(readErrorMessage({ flags: { port: '99999' } })).toBe(
      'port (from --port) is "99999", but must be a whole number from 0 to 65535',
    )
    expect(readErrorMessage({ yaml: 'http.keep_alive_timeout: 10s' })).toBe(
      'http.keep_alive_timeout (from redrive.yaml line 1) is "10s", but must be a duration such as 300ms, 1.5s, 5m or 24h, from 2m to 1h',
    )
  })

  it('the error for an invalid choice suggests the nearest one', () => {
    expect(readErrorMessage({ environment: { REDRIVE_LOG_LEVEL: 'debgu' } })).toContain('did you mean debug?')
  })

  it('an invalid value in the file is an error even if a flag overrides it', () => {
    expect(readErrorMessage({ yaml: 'port: x', flags: { port: '1' } })).toContain('redrive.yaml line 1')
  })

  it('errors never show a secret, nor the password of a URL', () => {
    expect(readErrorMessage({ environment: { REDRIVE_VAULT_TOKEN: 'vault:hush' } })).not.toContain('hush')
    expect(readErrorMessage({ flags: { port: 'postgres://app:hush@db/queues' } })).not.toContain('hush')
  })
})

describe('an invalid settings file', () => {
  it('the error for invalid YAML has the line number, but not the text of the line', () => {
    const message = readErrorMessage({ yaml: 'port: 1\nvault.token: "hush\n' })
    expect(message).toMatch(/^redrive\.yaml line \d cannot be read as YAML: /)
    expect(message).not.toContain('hush')
  })

  it.each([
    ['- port\n', 'must contain settings'],
    ['port: 1\nport: 2\n', 'duplicate key'],
    ['log: {level: debug}\nlog.level: info\n', 'log.level is set twice'],
    ['port:\n', 'port in redrive.yaml line 1 has no value'],
    ['host:\n  - a\n  - {b: c}\n', 'host in redrive.yaml line 1 has no value'],
    ['config: other.yaml\n', 'config cannot be set in redrive.yaml line 1'],
  ])('the settings file %j is rejected: %s', (yaml, message) => {
    expect(readErrorMessage({ yaml })).toContain(message)
  })

  it('a missing settings file is an error only if it was named', () => {
    expect(readErrorMessage({ flags: { config: 'gone.yaml' } })).toBe(
      'the settings file gone.yaml (from --config) cannot be read: ENOENT',
    )
    expect(load().settings.port).toBe(8080)
  })
})

describe('the settings table', () => {
  const names = Object.keys(settingsTable)

  it('every setting has its own flag and its own variable', () => {
    expect(new Set(names.map(toFlag)).size).toBe(names.length)
    expect(new Set(names.map(toEnvironmentName)).size).toBe(names.length)
    expect([toFlag('http.body_bytes_max'), toEnvironmentName('http.body_bytes_max')]).toEqual([
      '--http-body-bytes-max',
      'REDRIVE_HTTP_BODY_BYTES_MAX',
    ])
  })

  it('every default is an allowed value', () => {
    for (const [name, setting] of Object.entries(settingsTable)) {
      if (setting.default === undefined) continue
      const text = setting.format(setting.default as never)
      expect([name, setting.parse(text)]).toEqual([name, setting.default])
    }
  })

  it('the keep-alive timeout is at least 120 seconds', () => {
    expect(settingsTable['http.keep_alive_timeout'].parse('119s')).toBeUndefined()
    expect(settingsTable['http.keep_alive_timeout'].parse('120s')).toBe(120_000)
  })
})
