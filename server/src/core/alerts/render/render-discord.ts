/**
 * Messages for webhooks of Discord: at most 2,000 characters of content, 10 embeds with 256 characters of
 * title and 4,096 of description, and 6,000 characters in all embeds. `allowed_mentions` without entries: no
 * text in the message can notify anybody.
 */
import type { Notification } from '../notification.ts'
import { type AlertColor, type DescribedAlert, type Description, renderWithin } from './describe.ts'
import { shorten } from './plain.ts'

const bounds = {
  contentMax: 2_000,
  embedsMax: 10,
  titleMax: 256,
  descriptionMax: 4_096,
  totalMax: 6_000,
} as const

const colors: Readonly<Record<AlertColor, number>> = {
  red: 0xd32f2f,
  orange: 0xf57c00,
  blue: 0x1976d2,
  green: 0x388e3c,
}

type Embed = Readonly<{ title: string; description: string; color: number; url?: string }>
export type DiscordMessage = Readonly<{
  content: string
  embeds: readonly Embed[]
  allowed_mentions: Readonly<{ parse: readonly [] }>
}>

export function renderDiscord(notification: Notification): DiscordMessage {
  return renderWithin(notification, toMessage, isWithin)
}

function isWithin({ content, embeds }: DiscordMessage): boolean {
  const total = embeds.reduce((sum, { title, description }) => sum + title.length + description.length, 0)
  const isEachWithin = embeds.every(({ description }) => description.length <= bounds.descriptionMax)
  return (
    content.length <= bounds.contentMax &&
    embeds.length <= bounds.embedsMax &&
    isEachWithin &&
    total <= bounds.totalMax
  )
}

function toMessage({ title, color, alerts, more, url }: Description): DiscordMessage {
  const lines = [
    `**${escapeMarkdown(title)}**`,
    ...(more === null ? [] : [more]),
    ...(url === null ? [] : [url]),
  ]
  return {
    content: lines.join('\n'),
    embeds: alerts.map((alert) => toEmbed(alert, colors[color])),
    allowed_mentions: { parse: [] },
  }
}

function toEmbed({ summary, facts, sample, url }: DescribedAlert, color: number): Embed {
  const lines = facts.map(([label, value]) => `**${label}:** ${escapeMarkdown(value)}`)
  const code = sample === null ? [] : [`\`\`\`\n${sample.replaceAll('`', 'ˋ')}\n\`\`\``]
  return {
    title: escapeMarkdown(shorten(summary, bounds.titleMax / 2)),
    description: [...lines, ...code].join('\n'),
    color,
    ...(url !== null && { url }),
  }
}

/** Discord shows a character behind a backslash as it is. A mention has no invisible space behind its `@`. */
function escapeMarkdown(text: string): string {
  return text.replaceAll(/[\\*_~`|>#[\]()<]/g, (mark) => `\\${mark}`).replaceAll('@', '@\u200b')
}
