/** Cursors of the webhook lists: base64 of `<xid>|<createdAt>`, for example `cv0…g|2026-11-18T12:00:00Z`. */

import { isXid } from '../ids/xid.ts'
import { type Instant, instantMax, instantMin } from '../time/instant.ts'
import { parseIsoInstant } from '../time/iso-time.ts'

/** The last row of a page: lists are sorted by creation time, then id. */
export type PageCursor = Readonly<{ id: string; createdAt: Instant }>

/** Longer texts are not read: no cursor is longer. */
const textMax = 128

export function formatPageCursor({ id, createdAt }: PageCursor): string {
  return btoa(`${id}|${formatUtc(createdAt)}`)
}

/**
 * Undefined: the text is not a cursor. Both base64 alphabets are accepted, with or without padding, and a
 * space counts as a plus sign, because that is how a plus sign in a URL is decoded.
 */
export function parsePageCursor(text: string): PageCursor | undefined {
  if (text.length > textMax) return undefined
  const decoded = decode(text.replaceAll(' ', '+').replaceAll('-', '+').replaceAll('_', '/'))
  if (decoded === undefined) return undefined
  const separator = decoded.indexOf('|')
  if (separator < 0) return undefined
  const id = decoded.slice(0, separator)
  const time = decoded.slice(separator + 1)
  const createdAt = /\dT\d/.test(time) ? parseIsoInstant(time) : undefined
  if (!isXid(id) || createdAt === undefined) return undefined
  if (createdAt < instantMin || createdAt > instantMax) return undefined
  return { id, createdAt }
}

function decode(base64: string): string | undefined {
  try {
    return atob(base64)
  } catch {
    return undefined
  }
}

/** All six digits of the microseconds: a cursor that rounds would skip or repeat rows. */
function formatUtc(instant: Instant): string {
  const ms = Math.floor(instant / 1_000)
  const us = String(instant - ms * 1_000).padStart(3, '0')
  return `${new Date(ms).toISOString().slice(0, -1)}${us}Z`
}
