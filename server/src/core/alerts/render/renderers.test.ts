import { describe, expect, it } from 'vitest'
import type { AlertText, Notification } from '../notification.ts'
import { renderDiscord } from './render-discord.ts'
import { renderEmail } from './render-email.ts'
import { renderOpsgenie } from './render-opsgenie.ts'
import { renderPagerDuty } from './render-pagerduty.ts'
import { renderSlack } from './render-slack.ts'
import { renderTeams } from './render-teams.ts'
import { renderTelegram } from './render-telegram.ts'
import { renderWebhook } from './render-webhook.ts'

const noon = Date.UTC(2026, 10, 15, 12) * 1_000

const hostileTexts = {
  mentions:
    '@everyone @here <!channel> <!here|x> <@U123> <https://evil.example|click> @bob [x](https://evil.example)',
  html: '<script>alert(1)</script><img src=x onerror="alert(1)">&amp;\'"</pre></code></table></a>',
  lines: 'first\r\nBcc: evil@example.com\r\n\r\n.\r\nsecond\u2028third\u2029\n\n\n\n\n\nfourth',
  directions: 'abc\u202egnp.exe\u2066\u2067\u200f\u061c def\ufeff\u200b',
  controls: 'a\0b\x1b[31mred\x07\x9b\x85',
  surrogates: 'a\ud800b\udc00c😀',
  marks: '*bold* _it_ ~no~ ``` `code` > quote # head || spoiler || \\ ***',
  long: `${'<&"\'@*_`'.repeat(13_000)}`,
  emoji: '👨‍👩‍👧‍👦'.repeat(10_000),
  spaces: ' \t\n '.repeat(25_000),
  json: '"}],"x":[{"',
  telegram: '/stop /ban@all #tag',
  cards: '{{DATE(2026-01-01T00:00:00Z)}} <at>everyone</at> $-{title}',
} as const

function hostile(text: string, count: number): Notification {
  const alert: AlertText = {
    id: 'a1',
    subject: text,
    severity: 'critical',
    summary: text,
    queue: text,
    group: text,
    count: 42,
    sampleError: text,
    startedAt: noon - 60_000_000,
    endedAt: null,
    url: `https://redrive.example.com/g/${encodeURIComponent(text.toWellFormed()).slice(0, 3_000)}`,
    dedupKey: text,
  }
  return {
    id: 'n1',
    kind: 'firing',
    severity: 'critical',
    namespace: text,
    rule: text,
    at: noon,
    url: 'https://redrive.example.com/?a=1&b=<x>|y',
    alerts: Array.from({ length: count }, (_, at) => ({ ...alert, id: `a${at}` })),
    moreAlerts: 3,
  }
}

/** All strings of a value, at any depth. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsOf)
}

const cases = Object.entries(hostileTexts).flatMap(([name, text]) => [
  [name, 1, text] as const,
  [name, 20, text] as const,
])

describe.each(cases)('a message with %s in %i alerts', (_name, count, text) => {
  const notification = hostile(text, count)

  it('for Slack stays within its limits and has no markup of its own', () => {
    const { text: fallback, blocks } = renderSlack(notification)
    expect(blocks.length).toBeLessThanOrEqual(50)
    for (const block of blocks)
      expect(block.text.text.length).toBeLessThanOrEqual(block.type === 'header' ? 150 : 3_000)
    const markup = [
      fallback,
      ...blocks.filter(({ type }) => type === 'section').map((block) => block.text.text),
    ]
    for (const each of markup) {
      // Only our own links are left.
      const links = each.match(/<[^>]*>/g) ?? []
      for (const link of links)
        expect(link).toMatch(/^<https:\/\/redrive\.example\.com\/[^<>|]*\|Open [A-Za-z ]+>$/)
      expect(each.replaceAll(/<[^>]*>/g, '')).not.toMatch(/[<>]/)
    }
    expect(blocks.every(({ text: { type, verbatim } }) => type === 'plain_text' || verbatim)).toBe(true)
    for (const { text: section } of blocks)
      expect(section.text.match(/```/g)?.length ?? 0).toBeLessThanOrEqual(2)
  })

  it('for Discord stays within its limits and can notify nobody', () => {
    const message = renderDiscord(notification)
    expect(message.allowed_mentions).toEqual({ parse: [] })
    expect(message.content.length).toBeLessThanOrEqual(2_000)
    expect(message.embeds.length).toBeLessThanOrEqual(10)
    expect(message.embeds.length).toBeGreaterThan(0)
    let total = 0
    for (const { title, description } of message.embeds) {
      expect(title.length).toBeLessThanOrEqual(256)
      expect(description.length).toBeLessThanOrEqual(4_096)
      expect(description.match(/```/g)?.length ?? 0).toBeOneOf([0, 2])
      total += title.length + description.length
    }
    expect(total).toBeLessThanOrEqual(6_000)
    expect(message.content).not.toMatch(/@(?:everyone|here)/)
    expect(message.content).not.toMatch(/(?<!\\)\]\(/)
  })

  it('for Teams stays within 28 KB and has texts in text runs only', () => {
    const message = renderTeams(notification)
    expect(2 * JSON.stringify(message).length).toBeLessThanOrEqual(28 * 1_024)
    const [{ content }] = message.attachments as unknown as [{ content: { body: { type: string }[] } }]
    expect(new Set(content.body.map(({ type }) => type))).toEqual(new Set(['RichTextBlock']))
  })

  it('for Telegram stays within its limit and has balanced tags of ours only', () => {
    const { text: html } = renderTelegram(notification, '-1')
    expect(html.length).toBeLessThanOrEqual(4_096)
    const open: string[] = []
    for (const [, slash, tag = '', attributes = ''] of html.matchAll(/<(\/?)(\w+)([^>]*)>/g)) {
      expect(['b', 'code', 'pre', 'a']).toContain(tag)
      expect(attributes).toMatch(/^(?: href="https:\/\/redrive\.example\.com\/[^"<>]*")?$/)
      if (slash === '') open.push(tag)
      else expect(open.pop()).toBe(tag)
    }
    expect(open).toEqual([])
    expect(html.replaceAll(/<\/?(?:b|code|pre|a)(?: href="[^"]*")?>/g, '')).not.toMatch(/[<>]/)
  })

  it('as an e-mail has a subject of one line and no markup of its own', () => {
    const { subject, text: plain, html } = renderEmail(notification)
    expect(subject).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
    expect(subject.length).toBeLessThanOrEqual(200)
    expect(plain).not.toContain('\r')
    const allowed =
      /<!doctype html>|<\/?(?:html|head|title|body|h2|p|b|table|tr|td|th|pre|a|meta)(?: (?:style|href|align|charset)="[^"<>]*")*>/g
    expect(html.replaceAll(allowed, '')).not.toMatch(/[<>]/)
    expect(html.length).toBeLessThan(1_000_000)
  })

  it('for PagerDuty has a bounded summary, key and size', () => {
    const events = renderPagerDuty(notification, 'key')
    expect(events).toHaveLength(count)
    for (const event of events) {
      const { payload, dedup_key: key } = event as { payload: { summary: string }; dedup_key: string }
      expect(payload.summary.length).toBeLessThanOrEqual(1_024)
      expect(key.length).toBeLessThanOrEqual(255)
      expect(new TextEncoder().encode(JSON.stringify(event)).length).toBeLessThan(512 * 1_024)
    }
  })

  it('for Opsgenie stays within its limits', () => {
    for (const { body } of renderOpsgenie(notification)) {
      const { message, alias, description, entity, details, tags } = body as {
        [name: string]: string
      } & { details: Record<string, string>; tags: string[] }
      expect(message?.length).toBeLessThanOrEqual(130)
      expect(alias?.length).toBeLessThanOrEqual(512)
      expect(description?.length).toBeLessThanOrEqual(15_000)
      expect(entity?.length).toBeLessThanOrEqual(512)
      expect(textsOf(details).concat(Object.keys(details)).join('').length).toBeLessThanOrEqual(8_000)
      for (const tag of tags) expect(tag.length).toBeLessThanOrEqual(50)
    }
  })

  it('as a webhook is bounded and can be encoded', () => {
    const body = JSON.stringify(renderWebhook(notification))
    expect(body.length).toBeLessThan(1_500_000)
    expect(body.isWellFormed()).toBe(true)
  })

  it('texts for people have no control, direction or surrogate characters', () => {
    const messages = [
      renderSlack(notification),
      renderDiscord(notification),
      renderTeams(notification),
      renderTelegram(notification, '-1'),
      renderEmail(notification),
      renderPagerDuty(notification, 'key'),
      renderOpsgenie(notification),
    ]
    for (const each of messages.flatMap(textsOf)) {
      expect(each.isWellFormed()).toBe(true)
      expect(each).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/)
      expect(each).not.toMatch(/[^\P{Cc}\n\t]/u)
    }
  })
})

describe('a message', () => {
  const notification = { ...hostile('x', 1), url: 'javascript:alert(1)' }

  it('links lead to web pages only', () => {
    const alerts = notification.alerts.map((alert) => ({ ...alert, url: 'data:text/html,x' }))
    const messages = [
      renderSlack({ ...notification, alerts }),
      renderTelegram({ ...notification, alerts }, '1'),
      renderEmail({ ...notification, alerts }),
      renderPagerDuty({ ...notification, alerts }, 'k'),
    ]
    expect(JSON.stringify(messages)).not.toMatch(/javascript:|data:text/)
  })

  it('the end of an alert closes its incident with the key that opened it', () => {
    const alerts = notification.alerts.map((alert) => ({ ...alert, dedupKey: 'group 7/é', endedAt: noon }))
    const end: Notification = { ...notification, kind: 'resolved', alerts }
    expect(renderPagerDuty(end, 'k')).toEqual([
      { routing_key: 'k', dedup_key: 'group 7/é', event_action: 'resolve' },
    ])
    expect(renderOpsgenie(end)[0]?.path).toBe('/group%207%2F%C3%A9/close?identifierType=alias')
    expect(renderSlack(end).text).toMatch(/^RESOLVED: /)
  })

  it('a message says how many alerts did not fit', () => {
    expect(JSON.stringify(renderSlack({ ...notification, moreAlerts: 1 }))).toContain(
      '1 more alert is not shown.',
    )
  })
})
