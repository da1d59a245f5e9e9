/**
 * Messages for incoming webhooks of Slack, in Block Kit: at most 50 blocks, 150 characters in a header and
 * 3,000 in a section.
 *
 * `&`, `<` and `>` are escaped, so that no text can be a link or a mention such as `<!channel>`. `verbatim`
 * keeps Slack from turning `@here` into a mention.
 */
import type { Notification } from '../notification.ts'
import { type DescribedAlert, type Description, renderWithin } from './describe.ts'
import { shorten } from './plain.ts'

const bounds = { headerMax: 150, sectionMax: 3_000, blocksMax: 50, messageMax: 30_000 } as const

type Block = Readonly<{
  type: 'header' | 'section'
  text: Readonly<{ type: 'plain_text' | 'mrkdwn'; text: string; emoji?: false; verbatim?: true }>
}>
export type SlackMessage = Readonly<{ text: string; blocks: readonly Block[] }>

export function renderSlack(notification: Notification): SlackMessage {
  return renderWithin(notification, toMessage, isWithin)
}

function isWithin({ blocks }: SlackMessage): boolean {
  const isEachWithin = blocks.every(({ text }) => text.text.length <= bounds.sectionMax)
  const isAllWithin = JSON.stringify(blocks).length <= bounds.messageMax
  return isEachWithin && isAllWithin && blocks.length <= bounds.blocksMax
}

function toMessage({ title, alerts, more, url }: Description): SlackMessage {
  return {
    text: escapeSlack(title),
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: shorten(title, bounds.headerMax), emoji: false } },
      ...alerts.flatMap(toBlocks),
      ...(more === null ? [] : [section(more)]),
      ...(url === null ? [] : [section(`<${escapeSlack(url)}|Open the alerts in Redrive>`)]),
    ],
  }
}

function toBlocks({ summary, facts, sample, url }: DescribedAlert): Block[] {
  const lines = [
    `*${escapeMarks(summary)}*`,
    ...facts.map(([label, value]) => `*${label}:* ${escapeMarks(value)}`),
    ...(url === null ? [] : [`<${escapeSlack(url)}|Open in Redrive>`]),
  ]
  const example = sample === null ? [] : [section(toCode(sample))]
  return [section(lines.join('\n')), ...example]
}

function section(text: string): Block {
  return { type: 'section', text: { type: 'mrkdwn', text, verbatim: true } }
}

/** Escaping makes a text up to five times as long, so the text is cut until its escaped form fits. */
function toCode(sample: string): string {
  const plain = sample.replaceAll('`', 'ˋ')
  let text = plain
  while (escapeSlack(text).length > bounds.sectionMax - 10)
    text = shorten(text, Math.floor(text.length * 0.8))
  return `\`\`\`\n${escapeSlack(text)}\n\`\`\``
}

/** Marks that would format the text around them become similar characters. */
function escapeMarks(text: string): string {
  const similar: Readonly<Record<string, string>> = { '*': '∗', _: 'ˍ', '~': '∼', '`': 'ˋ' }
  return escapeSlack(text).replaceAll(/(?<![\w])_|_(?![\w])|[*~`]/g, (mark) => similar[mark] ?? mark)
}

function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
