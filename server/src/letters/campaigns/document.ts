/**
 * The document of a campaign: how its facts are stored as JSON. `formatVersion` is the version of the layout.
 * Documents stored before the field existed have none and the layout of version 1. Version 2 added `limit`
 * and `expectedCount`, which a document of version 1 does not have.
 *
 * To change the layout, increase `formatVersion` and give `decodeDocument` a branch for the older version. A
 * server that knows only older versions refuses a newer document, so it can neither misread a campaign nor
 * overwrite it.
 */
import type { LetterId } from '../../core/ids/ids.ts'
import { KnownError } from '../../errors.ts'
import type { CampaignCounts, CampaignDocument, StoredCampaign } from '../../storage/contract/campaigns.ts'
import type { LetterCursor, LetterFilter } from '../../storage/contract/letters.ts'
import type { Campaign, CampaignSpec, CampaignState } from '../letters.ts'
import { startPace } from './pace.ts'
import { type CampaignFacts, measureRate } from './state-machine.ts'

const formatVersion = 2

type StoredFacts = Omit<CampaignFacts, 'spec' | 'positionDone'> &
  Readonly<{ formatVersion: number; spec: StoredSpec; placeDone: number | null }>
type StoredSpec = Omit<CampaignSpec, 'selection'> & Readonly<{ selection: StoredSelection }>
/** JSON has no bytes, so the key of a filter is stored as base64. Two fields keep their first names. */
type StoredFilter = Omit<LetterFilter, 'key' | 'errorCodes' | 'retryCount'> & {
  keyBase64?: string
  reasons?: readonly string[]
  redrives?: NonNullable<LetterFilter['retryCount']>
}
type StoredSelection = Readonly<{ letterIds: readonly LetterId[] } | { filter: StoredFilter }>

/**
 * The document keeps up to this many ids of a campaign on named letters, because it is written with every
 * step. The frozen set has all of them.
 */
export const namedIdsKept = 100

export function encodeDocument(facts: CampaignFacts): StoredFacts {
  const { positionDone, ...rest } = facts
  return { formatVersion, ...rest, spec: encodeSpec(facts.spec), placeDone: positionDone }
}

export function decodeDocument({ id, document }: Pick<StoredCampaign, 'id' | 'document'>): CampaignFacts {
  const { formatVersion: version = 1 } = document
  if (version > formatVersion) {
    throw new KnownError(
      'SCHEMA_NEWER',
      `the document of campaign ${id} has format version ${version}; this program knows versions up to ${formatVersion}`,
    )
  }
  return decodeFacts(new JsonObject(document, `the document of campaign ${id}`))
}

/** Decodes the spec in a document, or in the audit row of the campaign's creation. */
export function decodeSpec(spec: unknown): CampaignSpec {
  return readSpec(JsonObject.parse(spec, 'the spec of a campaign'))
}

export function toCampaign(stored: StoredCampaign, now: number): Campaign {
  const facts = decodeDocument(stored)
  const { frozenUntil, positionDone, pace, overlooked, recent, ...shown } = facts
  const { counts } = stored
  return {
    id: stored.id,
    namespace: stored.namespace,
    ...shown,
    counts,
    rate: measureRate(facts, now),
    waitsFor: describeWait(facts, counts),
  }
}

/** An active campaign waits for workers in its canary phase, and after its last letter was sent. */
function describeWait({ state, endedAt }: CampaignFacts, { sent, pending }: CampaignCounts): string {
  const isWaiting = sent > 0 && endedAt === null && (state === 'canary' || pending === 0)
  return isWaiting ? `workers have to process ${sent} letters that were sent` : ''
}

function encodeSpec(spec: CampaignSpec): StoredSpec {
  return { ...spec, selection: encodeSelection(spec.selection) }
}

function encodeSelection(selection: CampaignSpec['selection']): StoredSelection {
  if ('letterIds' in selection) return { letterIds: selection.letterIds.slice(0, namedIdsKept) }
  const { key, errorCodes, retryCount, ...rest } = selection.filter
  return {
    filter: {
      ...rest,
      ...(errorCodes !== undefined && { reasons: errorCodes }),
      ...(retryCount !== undefined && { redrives: retryCount }),
      ...(key !== undefined && { keyBase64: Buffer.from(key).toString('base64') }),
    },
  }
}

function decodeFacts(document: JsonObject): CampaignFacts {
  const updatedAt = document.readNumber('updatedAt')
  const overlooked = document.readObject('overlooked', { ended: 0, bad: 0 })
  const pace = document.readObject('pace', startPace(updatedAt))
  return {
    spec: readSpec(document.readObject('spec')),
    state: document.readText('state') as CampaignState,
    stateReason: document.readText('stateReason', ''),
    actor: document.readText('actor', ''),
    reason: document.readText('reason', ''),
    createdAt: document.readNumber('createdAt'),
    updatedAt,
    startedAt: document.readNumberOrNull('startedAt'),
    endedAt: document.readNumberOrNull('endedAt'),
    size: document.readNumberOrNull('size'),
    frozenUntil: (document.fields.frozenUntil ?? null) as LetterCursor | null,
    positionDone: document.readNumberOrNull('placeDone'),
    pace: { since: pace.readNumber('since'), at: pace.readNumber('at'), tokens: pace.readNumber('tokens') },
    overlooked: { ended: overlooked.readNumber('ended'), bad: overlooked.readNumber('bad') },
    recent: (document.fields.recent ?? []) as CampaignFacts['recent'],
  }
}

/** A limit has no default: a campaign whose rate is unknown must not run without one. */
function readSpec(spec: JsonObject): CampaignSpec {
  return {
    name: spec.readText('name'),
    action: spec.readText('action') as CampaignSpec['action'],
    selection: decodeSelection(spec.readObject('selection')),
    target: spec.readTextOrNull('target'),
    ...(Array.isArray(spec.fields.targetNamespaces) && {
      targetNamespaces: spec.fields.targetNamespaces as string[],
    }),
    isDeadAllowed: spec.fields.isDeadAllowed === true,
    canaryCount: spec.readNumber('canaryCount'),
    ratePerSecond: spec.readNumber('ratePerSecond'),
    rampUs: spec.readNumber('rampUs'),
    haltRatio: spec.readNumber('haltRatio'),
    haltMin: spec.readNumber('haltMin'),
    limit: spec.readNumberOrNull('limit'),
    expectedCount: spec.readNumberOrNull('expectedCount'),
  }
}

function decodeSelection(selection: JsonObject): CampaignSpec['selection'] {
  const { letterIds } = selection.fields
  if (Array.isArray(letterIds)) return { letterIds: letterIds as string[] }
  const { keyBase64, reasons, redrives, ...rest } = selection.readObject('filter').fields as StoredFilter
  return {
    filter: {
      ...rest,
      ...(reasons !== undefined && { errorCodes: reasons }),
      ...(redrives !== undefined && { retryCount: redrives }),
      ...(keyBase64 !== undefined && { key: new Uint8Array(Buffer.from(keyBase64, 'base64')) }),
    },
  }
}

/** The fields of a JSON object, read with their types. An error names the field and the document. */
class JsonObject {
  readonly fields: CampaignDocument
  readonly #name: string

  constructor(fields: CampaignDocument, name: string) {
    this.fields = fields
    this.#name = name
  }

  static parse(value: unknown, name: string): JsonObject {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Error(`${name} is not an object`)
    }
    return new JsonObject(value as CampaignDocument, name)
  }

  readObject(field: string, missing?: object): JsonObject {
    return JsonObject.parse(this.fields[field] ?? missing, `${field} in ${this.#name}`)
  }

  readText(field: string, missing?: string): string {
    const value = this.fields[field] ?? missing
    if (typeof value === 'string') return value
    throw this.#mismatch(field, 'a text')
  }

  readTextOrNull(field: string): string | null {
    return (this.fields[field] ?? null) === null ? null : this.readText(field)
  }

  readNumber(field: string): number {
    const value = this.fields[field]
    if (typeof value === 'number') return value
    throw this.#mismatch(field, 'a number')
  }

  readNumberOrNull(field: string): number | null {
    return (this.fields[field] ?? null) === null ? null : this.readNumber(field)
  }

  #mismatch(field: string, expected: string): Error {
    return new Error(
      `${field} in ${this.#name} is ${JSON.stringify(this.fields[field])}; expected ${expected}`,
    )
  }
}
