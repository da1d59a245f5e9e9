/** The settings of workers, lag and Redis. */
import { usPerMs } from '../core/time/instant.ts'
import type { ExpectedWorkers } from '../core/watching/findings.ts'
import type { LagThreshold } from '../core/watching/lag.ts'
import type { WorkerRules } from '../core/watching/worker.ts'
import { duration, integer, list, pem, secret, string } from './settings/setting-kinds.ts'
import type { Settings } from './settings/settings.ts'
import { maskStore } from './store/store-text.ts'

const expectedPattern = /^([A-Za-z0-9._-]{1,200})=([1-9]\d{0,4})$/
const thresholdPattern = /^([A-Za-z0-9._-]{0,249}\*?)=(\d{1,15})\/(\d{1,15})$/

export const watchingSettings = {
  'workers.missing_timeout': duration({
    default: '1m',
    min: '30s',
    max: '24h',
    sentence: 'How long a worker may send no heartbeat before it is missing.',
  }),
  'workers.idle_timeout': duration({
    default: '5m',
    min: '1s',
    max: '720h',
    sentence:
      'How long a running worker may process no message before it is idle, or stuck if messages wait.',
  }),
  'workers.shutdown_timeout': duration({
    default: '2m',
    min: '1s',
    max: '24h',
    sentence: 'How long a worker may shut down.',
  }),
  'workers.retention': duration({
    default: '24h',
    min: '5m',
    max: '8760h',
    sentence: 'How long a worker that stopped or is missing stays in the list of workers.',
  }),
  'workers.check_interval': duration({
    default: '5s',
    min: '1s',
    max: '10s',
    sentence: 'How often heartbeats are stored, read from Redis, and checked.',
  }),
  'workers.count_max': integer({
    default: 20_000,
    min: 1,
    max: 100_000,
    sentence: 'How many workers are watched. Heartbeats of further ones are refused.',
  }),
  'workers.expected': list({
    sentence: 'Types of workers that must appear, with their number: payout-executor=2.',
    isEntry: (text) => expectedPattern.test(text),
    allowed: 'entries <type>=<number>',
  }),
  'kafka.lag_thresholds': list({
    sentence:
      'The lag of a topic above which a consumer group gets a warning, or a critical finding: escrow.commands=100/500. A * at the end of a topic stands for any ending; the first entry that matches decides.',
    isEntry: (text) => parseThreshold(text) !== undefined,
    allowed: 'entries <topic>=<warning>/<critical>',
  }),
  'redis.url': string({
    sentence:
      'The Redis in which workers write heartbeats: redis://host:6379/0, or rediss:// for TLS. Without it, workers report over HTTP only.',
    pattern: /^rediss?:\/\/\S+$/,
    allowed: 'an address such as redis://cache.example.com:6379/0',
    format: maskStore,
  }),
  'redis.password': secret({
    sentence: 'The password for Redis. It is read again for each new connection.',
  }),
  'redis.tls_ca': pem({
    sentence: 'The certificate authorities that are trusted for rediss://. Default: those of the system.',
  }),
} as const

type WatchingSettings = Pick<Settings, keyof typeof watchingSettings>

export function toWorkerRules(settings: WatchingSettings): WorkerRules {
  return {
    missingUs: settings['workers.missing_timeout'] * usPerMs,
    idleUs: settings['workers.idle_timeout'] * usPerMs,
    drainingUs: settings['workers.shutdown_timeout'] * usPerMs,
    forgetUs: settings['workers.retention'] * usPerMs,
  }
}

export function toExpectedWorkers(settings: WatchingSettings): readonly ExpectedWorkers[] {
  return settings['workers.expected'].map((entry) => {
    const [, type = '', count = ''] = expectedPattern.exec(entry) ?? []
    return { type, countMin: Number(count) }
  })
}

export function toLagThresholds(settings: WatchingSettings): readonly LagThreshold[] {
  return settings['kafka.lag_thresholds'].flatMap((entry) => parseThreshold(entry) ?? [])
}

/** Undefined if the warning is not below the critical limit. */
function parseThreshold(text: string): LagThreshold | undefined {
  const [, topic = '', low = '', high = ''] = thresholdPattern.exec(text) ?? []
  const [warning, critical] = [Number(low), Number(high)]
  return topic === '' || warning > critical ? undefined : { topic, warning, critical }
}
