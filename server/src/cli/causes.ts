/** The commands for causes act on a running server, because a server runs the campaign. */
import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { KnownError } from '../errors.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { type ServerOptions, withServer } from './server-target.ts'
import { toTable } from './table.ts'

export type ListOptions = ServerOptions &
  Readonly<{ queue?: readonly string[]; status?: readonly string[]; limit?: string; json?: true }>
export type CampaignOptions = ServerOptions &
  Readonly<{
    queue?: readonly string[]
    target?: string
    reason?: string
    name?: string
    rate?: string
    canary?: string
    expect?: string
    yes?: true
  }>

type QueueCount = Readonly<{ queue: string; count: number }>
type Cause = Readonly<{
  id: string
  title: string
  count: number
  last_seen_at: string
  statuses: Readonly<Record<string, number>>
  queues: readonly QueueCount[]
  queue_count: number
}>
type Preview = Readonly<{
  count: number
  targets?: readonly QueueCount[]
  warnings: readonly string[]
}>

const listDefault = '20'
const titleMax = 90

/** The largest cause first. */
export async function listCauses(
  { settings }: LoadedSettings,
  context: Context,
  { queue = [], status = [], limit = listDefault, json, ...server }: ListOptions,
): Promise<number> {
  const target = withServer(settings, context, server)
  const query = new URLSearchParams([
    ...queue.map((name): [string, string] => ['queue', name]),
    ...status.map((name): [string, string] => ['status', name]),
    ['limit', limit],
  ])
  const page = await target.get<{ causes: readonly Cause[]; next_cursor: string | null }>(`causes?${query}`)
  if (json === true) context.print(JSON.stringify(page))
  else printCauses(page.causes, context)
  if (page.next_cursor !== null) context.report(`there are more causes than ${limit}: use --limit`)
  return exitCodes.ok
}

function printCauses(causes: readonly Cause[], context: Context): void {
  if (causes.length === 0) context.report('there are no dead letters that match')
  else {
    const rows = causes.map(({ id, count, statuses, queue_count, last_seen_at, title }) => [
      id,
      String(count),
      String(statuses.PENDING ?? 0),
      String(queue_count),
      last_seen_at.slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace('T', ' '),
      shorten(title),
    ])
    const header = ['cause', 'letters', 'pending', 'queues', 'last seen (UTC)', 'title']
    for (const line of toTable([header, ...rows])) context.print(line)
  }
}

/** One cause with its counts per queue. */
export async function showCause(
  { settings }: LoadedSettings,
  context: Context,
  options: ServerOptions,
  id: string,
): Promise<number> {
  const target = withServer(settings, context, options)
  const cause = await target.get<Cause & { sample: { failure: { message: string } | null } | null }>(
    `causes/${encodeURIComponent(id)}`,
  )
  context.print(cause.title)
  const statuses = Object.entries(cause.statuses).filter(([, count]) => count > 0)
  context.print(statuses.map(([status, count]) => `${count} ${status}`).join(', ') || 'no letters')
  for (const { queue, count } of cause.queues) context.print(`  ${queue}: ${count}`)
  if (cause.queue_count > cause.queues.length)
    context.print(`  and ${cause.queue_count - cause.queues.length} more`)
  const message = cause.sample?.failure?.message
  if (message !== undefined) context.print(`newest: ${shorten(message.replaceAll(/\s+/g, ' '))}`)
  return exitCodes.ok
}

/**
 * Shows what a campaign for the letters of a cause would do, and starts it only with `--yes`.
 */
export async function startCampaign(
  action: 'redrive' | 'discard',
  { settings }: LoadedSettings,
  context: Context,
  options: CampaignOptions,
  id: string,
): Promise<number> {
  const target = withServer(settings, context, options)
  const cause = await target.get<Cause>(`causes/${encodeURIComponent(id)}`)
  const { queue = [] } = options
  const selection = {
    action,
    filter: { cause_id: cause.id, ...(queue.length > 0 && { queue }) },
    ...(options.target !== undefined && { target: options.target }),
  }
  const preview = await target.post<Preview>('campaigns/preview', selection)
  context.report(`${action} ${preview.count} letters: ${shorten(cause.title)}`)
  for (const each of preview.targets ?? []) context.report(`  ${each.count} to ${each.queue}`)
  for (const warning of preview.warnings) context.report(`  warning: ${warning}`)
  if (options.yes !== true) {
    context.report('nothing was changed: add --reason and --yes to start the campaign')
    return exitCodes.ok
  }
  const created = await target.post<{ id: string }>('campaigns', {
    ...selection,
    ...readPace(options),
    name: options.name ?? `${action} ${cause.title}`.slice(0, 100),
    reason: readReason(options.reason),
  })
  context.report(`started; watch it with GET /api/v1/campaigns/${created.id}`)
  context.print(created.id)
  return exitCodes.ok
}

/** Merges the other causes into the first one. */
export async function mergeCauses(
  { settings }: LoadedSettings,
  context: Context,
  options: ServerOptions & Readonly<{ reason?: string }>,
  [into = '', ...others]: readonly string[],
): Promise<number> {
  const target = withServer(settings, context, options)
  if (others.length === 0) throw new KnownError('SETTING_INVALID', 'name at least two causes to merge')
  const body = { cause_ids: others, reason: readReason(options.reason) }
  const cause = await target.post<Cause>(`causes/${encodeURIComponent(into)}/merge`, body)
  context.report(`${cause.count} letters in ${cause.queue_count} queues: ${shorten(cause.title)}`)
  context.print(cause.id)
  return exitCodes.ok
}

function readReason(reason: string | undefined): string {
  if (reason !== undefined && reason.trim() !== '') return reason
  throw new KnownError('SETTING_INVALID', '--reason is missing: say why, for the audit log')
}

function readPace({ rate, canary, expect }: CampaignOptions): object {
  return {
    ...(rate !== undefined && { rate_per_second: readNumber('--rate', rate) }),
    ...(canary !== undefined && { canary_count: readNumber('--canary', canary) }),
    ...(expect !== undefined && { expected_count: readNumber('--expect', expect) }),
  }
}

function readNumber(flag: string, text: string): number {
  if (/^[0-9]{1,9}(?:\.[0-9]{1,3})?$/.test(text)) return Number(text)
  throw new KnownError('SETTING_INVALID', `${flag} is ${text.slice(0, 40)}; it must be a number`)
}

function shorten(text: string): string {
  return text.length <= titleMax ? text : `${text.slice(0, titleMax - 1)}…`
}
