/** The commands for alerts act on a running server. */
import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { KnownError } from '../errors.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { type ServerOptions, withServer } from './server-target.ts'
import { toTable } from './table.ts'

export type AlertListOptions = ServerOptions &
  Readonly<{ state?: readonly string[]; rule?: string; queue?: string; limit?: string; json?: true }>
export type AlertDecisionOptions = ServerOptions &
  Readonly<{ note?: string; reason?: string; until?: string }>

type Alert = Readonly<{
  id: string
  severity: string
  state: string
  rule: string
  summary: string
  started_at: string
}>

const limitDefault = '50'

export async function listAlerts(
  { settings }: LoadedSettings,
  context: Context,
  { state = ['firing'], rule, queue, limit = limitDefault, json, ...server }: AlertListOptions,
): Promise<number> {
  const query = new URLSearchParams(state.map((each): [string, string] => ['state', each]))
  if (rule !== undefined) query.set('rule', rule)
  if (queue !== undefined) query.set('queue', queue)
  query.set('limit', limit)
  const page = await withServer(settings, context, server).get<{
    alerts: readonly Alert[]
    next_cursor: string | null
  }>(`alerts?${query}`)
  if (json === true) context.print(JSON.stringify(page))
  else if (page.alerts.length === 0) context.report('there are no alerts that match')
  else {
    const rows = page.alerts.map((alert) => [
      alert.id,
      alert.severity,
      alert.state,
      alert.started_at.slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace('T', ' '),
      alert.rule,
      alert.summary,
    ])
    const header = ['alert', 'severity', 'state', 'since (UTC)', 'rule', 'summary']
    for (const line of toTable([header, ...rows])) context.print(line)
  }
  if (page.next_cursor !== null) context.report(`there are more alerts than ${limit}: use --limit`)
  return exitCodes.ok
}

export async function decideAlert(
  action: 'acknowledge' | 'mute' | 'resolve',
  { settings }: LoadedSettings,
  context: Context,
  { note, reason, until, ...server }: AlertDecisionOptions,
  id: string,
): Promise<number> {
  if (action === 'mute' && until === undefined)
    throw new KnownError('SETTING_INVALID', '--until is missing: give the end of the mute')
  const { state, summary } = await withServer(settings, context, server).post<Alert>(
    `alerts/${encodeURIComponent(id)}/${action}`,
    {
      ...(note !== undefined && { note }),
      ...(reason !== undefined && { reason }),
      ...(until !== undefined && { until }),
    },
  )
  context.report(`${state}: ${summary}`)
  return exitCodes.ok
}
