import { describe, expect, it } from 'vitest'
import { noon } from '../../../test/make.ts'
import type { CampaignDocument } from '../../storage/contract/campaigns.ts'
import { decodeDocument, encodeDocument, namedIdsKept } from './document.ts'
import type { CampaignFacts } from './state-machine.ts'

/** As stored before documents had a version. */
const withoutVersion = `{"spec":{"name":"after the fix","action":"redrive",
  "selection":{"filter":{"queues":["orders-dead"],"died":{"until":${noon}},"keyBase64":"AP8="}},"target":null,
  "isDeadAllowed":true,"canaryCount":5,"ratePerSecond":10,"rampUs":60000000,"haltRatio":0.2,"haltMin":10},
  "state":"running","stateReason":"","actor":"ann","reason":"INC-1","createdAt":${noon},"updatedAt":${noon + 7},
  "startedAt":${noon + 1},"endedAt":null,"size":100,"frozenUntil":{"value":${noon},"id":"a"},"placeDone":5,
  "pace":{"since":${noon},"at":${noon + 7},"tokens":0.5},"overlooked":{"ended":5,"bad":1},"recent":[[1794744000,5]]}`

const facts: CampaignFacts = {
  spec: {
    name: 'after the fix',
    action: 'redrive',
    selection: { filter: { queues: ['orders-dead'], died: { until: noon }, key: new Uint8Array([0, 255]) } },
    target: null,
    isDeadAllowed: true,
    canaryCount: 5,
    ratePerSecond: 10,
    rampUs: 60_000_000,
    haltRatio: 0.2,
    haltMin: 10,
    limit: null,
    expectedCount: null,
  },
  state: 'running',
  stateReason: '',
  actor: 'ann',
  reason: 'INC-1',
  createdAt: noon,
  updatedAt: noon + 7,
  startedAt: noon + 1,
  endedAt: null,
  size: 100,
  frozenUntil: { value: noon, id: 'a' },
  positionDone: 5,
  pace: { since: noon, at: noon + 7, tokens: 0.5 },
  overlooked: { ended: 5, bad: 1 },
  recent: [[1_794_744_000, 5]],
}

const parse = (text: string): CampaignDocument => JSON.parse(text) as CampaignDocument
const decode = (document: CampaignDocument): CampaignFacts => decodeDocument({ id: 'c1', document })

describe('the document of a campaign', () => {
  it('a document that was stored without a format version is decoded', () => {
    expect(decode(parse(withoutVersion))).toEqual(facts)
  })

  it('a document is stored with its format version and decodes to the same facts', () => {
    const document = parse(JSON.stringify(encodeDocument(facts)))
    expect(document.formatVersion).toBe(2)
    expect(decode(document)).toEqual(facts)
  })

  it('a document keeps the first named letters only', () => {
    const letterIds = Array.from({ length: namedIdsKept + 1 }, (_, index) => `letter-${index}`)
    const named = { ...facts, spec: { ...facts.spec, selection: { letterIds } } }
    expect(decode(encodeDocument(named)).spec.selection).toEqual({
      letterIds: letterIds.slice(0, namedIdsKept),
    })
  })

  it('a document of a newer format version is refused with both versions', () => {
    expect(() => decode({ ...parse(withoutVersion), formatVersion: 3 })).toThrow(
      expect.objectContaining({
        code: 'SCHEMA_NEWER',
        message: 'the document of campaign c1 has format version 3; this program knows versions up to 2',
      }),
    )
  })

  it('fields that describe progress have a default, and limits do not', () => {
    const { pace, overlooked, recent, placeDone, frozenUntil, ...rest } = parse(withoutVersion)
    expect(decode(rest)).toMatchObject({
      pace: { since: noon + 7, at: noon + 7, tokens: 0 },
      overlooked: { ended: 0, bad: 0 },
      recent: [],
      positionDone: null,
      frozenUntil: null,
    })
    const { ratePerSecond, ...unlimited } = rest.spec as Record<string, unknown>
    expect(() => decode({ ...rest, spec: unlimited })).toThrow(
      'ratePerSecond in spec in the document of campaign c1 is undefined; expected a number',
    )
  })
})
