/**
 * Messages for workflows of Microsoft Teams: an Adaptive Card of at most 28 KB. All texts from outside are
 * text runs, which have no markup. Teams may count two bytes for each character, so the limit applies to
 * that size.
 */
import type { Notification } from '../notification.ts'
import { type AlertColor, type DescribedAlert, type Description, renderWithin } from './describe.ts'

const bytesMax = 28 * 1_024

const colors: Readonly<Record<AlertColor, string>> = {
  red: 'Attention',
  orange: 'Warning',
  blue: 'Accent',
  green: 'Good',
}

type Element = Readonly<Record<string, unknown>>
export type TeamsMessage = Readonly<{ type: 'message'; attachments: readonly Element[] }>

export function renderTeams(notification: Notification): TeamsMessage {
  return renderWithin(notification, toMessage, (message) => 2 * JSON.stringify(message).length <= bytesMax)
}

function toMessage({ title, color, alerts, more, url }: Description): TeamsMessage {
  const body = [
    richText([{ text: title, weight: 'Bolder', size: 'Large', color: colors[color] }]),
    ...alerts.flatMap(toElements),
    ...(more === null ? [] : [richText([{ text: more }])]),
  ]
  const actions = url === null ? [] : [{ type: 'Action.OpenUrl', title: 'Open the alerts in Redrive', url }]
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    msteams: { width: 'Full' },
    body,
    actions,
  }
  const contentType = 'application/vnd.microsoft.card.adaptive'
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] }
}

function toElements({ summary, facts, sample, url }: DescribedAlert): Element[] {
  const link = url === null ? {} : { selectAction: { type: 'Action.OpenUrl', url } }
  const code = sample === null ? [] : [richText([{ text: sample, fontType: 'Monospace' }])]
  return [
    { ...richText([{ text: summary, weight: 'Bolder', ...link }]), separator: true },
    ...facts.map(([label, value]) => ({
      ...richText([{ text: `${label}: `, weight: 'Bolder' }, { text: value }]),
      spacing: 'None',
    })),
    ...code,
  ]
}

function richText(runs: readonly Readonly<Record<string, unknown>>[]): Element {
  return { type: 'RichTextBlock', inlines: runs.map((run) => ({ type: 'TextRun', ...run })) }
}
