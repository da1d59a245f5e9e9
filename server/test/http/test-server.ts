import { afterEach } from 'vitest'
import { readSettings } from '../../src/config/settings/read-settings.ts'
import { type Settings, settingsTable } from '../../src/config/settings/settings.ts'
import { createLogger, type Logger, type LogLevel } from '../../src/ops/log/log.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import type { StoreTarget } from '../../src/storage/open-storage.ts'

export type LogLine = Readonly<Record<string, unknown> & { level: string; msg: string }>

const running: RunningServer[] = []

/** Creates a logger whose lines a test can read. */
export function createReadableLog(level: LogLevel = 'debug'): { log: Logger; lines: LogLine[] } {
  const lines: LogLine[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  return { log: createLogger({ level, isPretty: false, destination }), lines }
}

/**
 * The default settings, on a free port. The values in `over` are not validated, because a test cannot wait
 * for the smallest timeout that the bounds allow.
 */
export function testSettings(over: Partial<Settings> = {}): Settings {
  return { ...readSettings(settingsTable, []).settings, port: 0, ...over }
}

/** Starts the whole server. It is stopped after the test. */
export async function startTestServer(
  over: Partial<Settings> = {},
  store: StoreTarget = { kind: 'memory' },
): Promise<RunningServer & { lines: LogLine[] }> {
  const { log, lines } = createReadableLog()
  const server = await startServer({ settings: testSettings(over), store, log })
  running.push(server)
  return { ...server, lines }
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop(0)))
})
