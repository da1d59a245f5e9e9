/** E-mails, as text and as HTML. */
import type { Notification } from '../notification.ts'
import { type AlertColor, type DescribedAlert, type Description, describe } from './describe.ts'
import { escapeHtml, toLine } from './plain.ts'

export type EmailMessage = Readonly<{ subject: string; text: string; html: string }>

const detail = { alertsMax: 20, sampleMax: 4_000, textMax: 500 }
const subjectMax = 200

const colors: Readonly<Record<AlertColor, string>> = {
  red: '#b71c1c',
  orange: '#b45309',
  blue: '#0d47a1',
  green: '#1b5e20',
}

export function renderEmail(notification: Notification): EmailMessage {
  const description = describe(notification, detail)
  return {
    // Without line breaks and control characters, so it cannot add a header.
    subject: toLine(`[Redrive] ${description.title}`, subjectMax),
    text: toText(description),
    html: toHtml(description),
  }
}

function toText({ title, alerts, more, url }: Description): string {
  const parts = [
    title,
    ...alerts.map(toTextPart),
    ...(more === null ? [] : [more]),
    ...(url === null ? [] : [`All alerts: ${url}`]),
  ]
  return `${parts.join('\n\n')}\n`
}

function toTextPart({ summary, facts, sample, url }: DescribedAlert): string {
  const lines = [
    summary,
    ...facts.map(([label, value]) => `${label}: ${value}`),
    ...(url === null ? [] : [`Details: ${url}`]),
    ...(sample === null ? [] : ['', 'Sample error:', sample]),
  ]
  return lines.join('\n')
}

function toHtml({ title, color, alerts, more, url }: Description): string {
  const parts = [
    `<h2 style="color:${colors[color]};font-size:18px">${escapeHtml(title)}</h2>`,
    ...alerts.map(toHtmlPart),
    ...(more === null ? [] : [`<p>${escapeHtml(more)}</p>`]),
    ...(url === null ? [] : [`<p><a href="${escapeHtml(url)}">Open the alerts in Redrive</a></p>`]),
  ]
  const head = `<head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>`
  const style = 'font-family:sans-serif;font-size:14px;color:#212121'
  return `<!doctype html>\n<html>${head}<body style="${style}">\n${parts.join('\n')}\n</body></html>\n`
}

function toHtmlPart({ summary, facts, sample, url }: DescribedAlert): string {
  const rows = facts.map(
    ([label, value]) =>
      `<tr><th align="left" style="padding-right:12px">${label}</th><td>${escapeHtml(value)}</td></tr>`,
  )
  const parts = [
    `<p><b>${escapeHtml(summary)}</b></p>`,
    `<table>${rows.join('')}</table>`,
    ...(sample === null
      ? []
      : [`<pre style="background:#f5f5f5;padding:8px;white-space:pre-wrap">${escapeHtml(sample)}</pre>`]),
    ...(url === null ? [] : [`<p><a href="${escapeHtml(url)}">Open in Redrive</a></p>`]),
  ]
  return parts.join('\n')
}
