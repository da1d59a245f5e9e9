/**
 * Messages for bots of Telegram: at most 4,096 characters. All texts from outside are escaped. Names and
 * examples are code, in which Telegram finds no mentions, commands or links.
 */
import type { Notification } from '../notification.ts'
import { type DescribedAlert, type Description, renderWithin } from './describe.ts'
import { escapeHtml } from './plain.ts'

const textMax = 4_096

export type TelegramMessage = Readonly<{
  chat_id: string
  text: string
  parse_mode: 'HTML'
  link_preview_options: Readonly<{ is_disabled: true }>
}>

export function renderTelegram(notification: Notification, chatId: string): TelegramMessage {
  const text = renderWithin(notification, toText, (html) => html.length <= textMax)
  return { chat_id: chatId, text, parse_mode: 'HTML', link_preview_options: { is_disabled: true } }
}

function toText({ title, alerts, more, url }: Description): string {
  const parts = [
    `<b>${escapeText(title)}</b>`,
    ...alerts.map(toPart),
    ...(more === null ? [] : [more]),
    ...(url === null ? [] : [`<a href="${escapeHtml(url)}">Open the alerts in Redrive</a>`]),
  ]
  return parts.join('\n\n')
}

function toPart({ summary, facts, sample, url }: DescribedAlert): string {
  const lines = [
    escapeText(summary),
    ...facts.map(([label, value]) => `<b>${label}:</b> <code>${escapeHtml(value)}</code>`),
    ...(sample === null ? [] : [`<pre>${escapeHtml(sample)}</pre>`]),
    ...(url === null ? [] : [`<a href="${escapeHtml(url)}">Open in Redrive</a>`]),
  ]
  return lines.join('\n')
}

/** A word joiner behind `@` and `/`: the text is no mention and no command. */
function escapeText(text: string): string {
  return escapeHtml(text).replaceAll(/[@/]/g, (mark) => `${mark}\u2060`)
}
