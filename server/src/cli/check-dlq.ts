/**
 * `redrive check dlq`: a plugin for Nagios and compatible monitors. It reads `/dlq-status` of a server,
 * prints one line with performance data, and reports the state as its exit code.
 */
import type { Context } from './context.ts'
import { checkCodes } from './exit-codes.ts'

export type CheckDlqOptions = Readonly<{
  warning: string
  critical: string
  channel?: string
  consumer?: string
  server?: string
  key?: string
  timeout: string
}>

export type DeadJobs = Readonly<{ channelId: string; consumerId: string; deadCount: number }>
export type Thresholds = Readonly<{ warning: number; critical: number }>
export type CheckResult = Readonly<{ code: number; line: string }>

const serverDefault = 'http://127.0.0.1:8080'
/** Consumers in the line; the others are only in the total. */
const namedMax = 5
const measuredMax = 1_000

export async function checkDlq(options: CheckDlqOptions, context: Context): Promise<number> {
  const { code, line } = await readAndEvaluate(options, context).catch((error: unknown) => ({
    code: checkCodes.unknown,
    line: `DLQ UNKNOWN - ${toPlainText(error instanceof Error ? error.message : String(error))}`,
  }))
  context.print(line)
  return code
}

async function readAndEvaluate(options: CheckDlqOptions, { environment }: Context): Promise<CheckResult> {
  const thresholds = {
    warning: toCount('warning', options.warning),
    critical: toCount('critical', options.critical),
  }
  if (thresholds.warning > thresholds.critical)
    throw new Error(`--warning ${thresholds.warning} is above --critical ${thresholds.critical}`)
  const url = options.server ?? environment.REDRIVE_SERVER ?? serverDefault
  const key = options.key ?? environment.REDRIVE_KEY ?? ''
  const read = createReader(url, key, toSeconds(options.timeout))
  const { consumers } = (await read('/dlq-status')) as Readonly<{ consumers: readonly DeadJobs[] }>
  const isWanted = ({ channelId, consumerId }: Omit<DeadJobs, 'deadCount'>): boolean =>
    (options.channel ?? channelId) === channelId && (options.consumer ?? consumerId) === consumerId
  const wanted = consumers.filter(isWanted)
  const isFiltered = options.channel !== undefined || options.consumer !== undefined
  // Consumers that never had a dead job are not listed. A name with a typing error must not look healthy.
  if (wanted.length === 0 && isFiltered && !(await hasConsumer(read, options, isWanted)))
    throw new Error(`there is no consumer ${options.consumer ?? '*'} in channel ${options.channel ?? '*'}`)
  return evaluateDeadJobs(wanted, thresholds)
}

/** The worst state of all consumers. A count above a threshold is a problem, one that is equal is not. */
export function evaluateDeadJobs(
  consumers: readonly DeadJobs[],
  { warning, critical }: Thresholds,
): CheckResult {
  const sorted = consumers.toSorted((left, right) => right.deadCount - left.deadCount)
  const total = sorted.reduce((sum, { deadCount }) => sum + deadCount, 0)
  const highest = sorted[0]?.deadCount ?? 0
  const [state, code] =
    highest > critical
      ? ['CRITICAL', checkCodes.critical]
      : highest > warning
        ? ['WARNING', checkCodes.warning]
        : ['OK', checkCodes.ok]
  const over = sorted.filter(({ deadCount }) => deadCount > warning)
  const named = over.slice(0, namedMax).map((each) => `${toPlainText(nameOf(each))} has ${each.deadCount}`)
  const more = over.length > namedMax ? `, and ${over.length - namedMax} more` : ''
  const details = named.length === 0 ? '' : `: ${named.join(', ')}${more}`
  const measures = sorted
    .slice(0, measuredMax)
    .map((each) => `${toLabel(nameOf(each))}=${each.deadCount};${warning};${critical};0`)
  const summary = `${total} dead ${total === 1 ? 'job' : 'jobs'} of ${sorted.length} ${sorted.length === 1 ? 'consumer' : 'consumers'}`
  return {
    code: code as number,
    line: `DLQ ${state} - ${summary}${details} | ${[`total=${total};;;0`, ...measures].join(' ')}`,
  }
}

type Read = (path: string) => Promise<unknown>

function createReader(url: string, key: string, seconds: number): Read {
  return async (path) => {
    const headers = key === '' ? {} : { Authorization: `Bearer ${key}` }
    const signal = AbortSignal.timeout(seconds * 1_000)
    const response = await fetch(new URL(path, url), { headers, signal }).catch((error: unknown) => {
      const reason = signal.aborted ? `no answer within ${seconds} s` : describeCause(error)
      throw new Error(`${url}: ${reason}`)
    })
    if (response.status !== 200)
      throw new Error(`${path} answered ${response.status}: ${(await response.text()).slice(0, 200)}`)
    return response.json()
  }
}

type ListedConsumers = Readonly<{
  consumers: readonly Readonly<{ channel_id: string; consumer_id: string }>[]
  next_cursor: string | null
}>

async function hasConsumer(
  read: Read,
  { channel }: CheckDlqOptions,
  isWanted: (consumer: Omit<DeadJobs, 'deadCount'>) => boolean,
): Promise<boolean> {
  let cursor: string | null = ''
  while (cursor !== null) {
    const query = new URLSearchParams({
      ...(channel !== undefined && { channel }),
      ...(cursor !== '' && { cursor }),
    })
    const page = (await read(`/api/v1/webhooks?${query}`)) as ListedConsumers
    const ids = page.consumers.map((each) => ({ channelId: each.channel_id, consumerId: each.consumer_id }))
    if (ids.some(isWanted)) return true
    cursor = page.next_cursor
  }
  return false
}

function nameOf({ channelId, consumerId }: DeadJobs): string {
  return `${channelId}/${consumerId}`
}

/** The text before the bar must be one line without a bar. */
function toPlainText(text: string): string {
  return text.replaceAll(/[\p{Cc}|]/gu, '_')
}

/** A label has no equals sign; a quote in it is doubled. */
function toLabel(name: string): string {
  return `'${toPlainText(name).replaceAll('=', '_').replaceAll("'", "''")}'`
}

function toCount(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new Error(`--${name} is ${JSON.stringify(text)}, but must be a whole number`)
}

const secondsMax = 300

function toSeconds(text: string): number {
  const seconds = Number(text)
  if (seconds > 0 && seconds <= secondsMax) return seconds
  throw new Error(`--timeout is ${JSON.stringify(text)}, but must be a number of seconds up to ${secondsMax}`)
}

function describeCause(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && cause.message !== '' ? cause.message : String(error)
}
