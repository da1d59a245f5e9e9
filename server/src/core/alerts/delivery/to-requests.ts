/** The HTTP requests that send a notification to a channel, in order. */
import type { Instant } from '../../time/instant.ts'
import { signPush } from '../../webhook/signature.ts'
import type { ChannelTarget } from '../channel.ts'
import type { Notification } from '../notification.ts'
import { renderDiscord } from '../render/render-discord.ts'
import { renderOpsgenie } from '../render/render-opsgenie.ts'
import { renderPagerDuty } from '../render/render-pagerduty.ts'
import { renderSlack } from '../render/render-slack.ts'
import { renderTeams } from '../render/render-teams.ts'
import { renderTelegram } from '../render/render-telegram.ts'
import { renderWebhook } from '../render/render-webhook.ts'

/** `headers`: names and values in turn. */
export type ChannelRequest = Readonly<{ url: string; headers: readonly string[]; body: Uint8Array }>

/** A channel that takes HTTP requests. */
export type HttpTarget = Exclude<ChannelTarget, { kind: 'email' }>

export function toRequests(
  target: HttpTarget,
  notification: Notification,
  now: Instant,
): readonly ChannelRequest[] {
  switch (target.kind) {
    case 'webhook': {
      const request = toRequest(target.url, renderWebhook(notification))
      const signed = { id: notification.id, sentAt: now, body: request.body }
      const signature = signPush({ current: target.secret, previous: null }, signed)
      return [{ ...request, headers: [...request.headers, ...Object.entries(signature).flat()] }]
    }
    case 'slack':
      return [toRequest(target.url, renderSlack(notification))]
    case 'teams':
      return [toRequest(target.url, renderTeams(notification))]
    case 'discord':
      return [toRequest(target.url, renderDiscord(notification))]
    case 'telegram': {
      const url = `${trimSlash(target.url)}/bot${target.bot_token}/sendMessage`
      return [toRequest(url, renderTelegram(notification, target.chat_id))]
    }
    case 'pagerduty':
      return renderPagerDuty(notification, target.routing_key).map((event) => toRequest(target.url, event))
    case 'opsgenie': {
      const { api_key: key, api_key_header: name } = target
      const value = name.toLowerCase() === 'authorization' ? `GenieKey ${key}` : key
      return renderOpsgenie(notification).map(({ path, body }) =>
        toRequest(trimSlash(target.url) + path, body, [name, value]),
      )
    }
  }
}

function toRequest(url: string, body: object, headers: readonly string[] = []): ChannelRequest {
  return {
    url,
    headers: ['Content-Type', 'application/json; charset=utf-8', 'User-Agent', 'Redrive', ...headers],
    body: new TextEncoder().encode(JSON.stringify(body)),
  }
}

function trimSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
