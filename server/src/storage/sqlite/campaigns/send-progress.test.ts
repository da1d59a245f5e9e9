import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { aFailure, anOrigin, bytes, noon } from '../../../../test/make.ts'
import type { CampaignLetterState } from '../../contract/campaigns.ts'
import type { ImportResult } from '../../contract/items.ts'
import type { Command } from '../../contract/storage.ts'
import type { Database } from '../connection/database.ts'
import { openFile } from '../connection/database-file.ts'
import { verifyCounts } from '../counts/verify.ts'
import { Writer } from '../write.ts'
import { listCampaignLetters } from './campaign-letters.ts'
import { getCampaign } from './campaigns.ts'

const id = 'campaign'
let database: Database
let writer: Writer
let letterIds: string[]

beforeEach(() => {
  database = openFile(':memory:', 'full')
  writer = new Writer(database, Math.random, () => noon)
  const items = Array.from({ length: 6 }, () => ({
    payload: bytes('{}'),
    origin: anOrigin({ kind: 'queue', name: 'work' }),
    failure: aFailure(),
  }))
  const results = write(
    { op: 'create-queue', queue: { name: 'dead' }, now: noon },
    { op: 'create-queue', queue: { name: 'work', deadQueue: 'dead' }, now: noon },
    { op: 'import', queue: 'dead', partition: 0, items, now: noon },
    { op: 'put-campaign', id, version: 0, state: 'running', document: {} },
  )
  letterIds = (results[2] as readonly ImportResult[]).map((imported) => imported.id as string)
  write({ op: 'freeze-ids', campaignId: id, letterIds })
})
afterEach(() => {
  expect(verifyCounts(database)).toEqual([])
  database.close()
})

function write(...commands: Command[]): unknown[] {
  const [outcome] = writer.write([commands])
  if (outcome?.isOk !== true) throw outcome?.error
  return outcome.results
}

function send(...places: number[]): unknown[] {
  const letters = places.map((place) => ({
    letterId: letterIds[place - 1] as string,
    queue: null,
    campaign: { id, position: place },
  }))
  const rules = { isDeadAllowed: false, isCapped: false, actor: 'ann', now: noon }
  const [sent] = write({ op: 'redrive', letters, ...rules })
  return (sent as readonly { isStarted: boolean; refusal?: string }[]).map(
    (each) => each.refusal ?? each.isStarted,
  )
}

function places(...states: CampaignLetterState[]): number[] {
  return listCampaignLetters(database, { campaignId: id, states, countMax: 100 }).map(
    ({ position }) => position,
  )
}

/** The places whose rows have a state of their own. */
function written(): unknown[] {
  const sql = 'select place from campaign_letters where campaign_id = ? and state <> 0 order by place'
  return database.readArrays(sql, id).map(([place]) => place)
}

describe('the send progress of a campaign', () => {
  it('sending the next letters writes one number and none of their rows', () => {
    expect(send(1, 2)).toEqual([true, true])
    expect(send(3, 4)).toEqual([true, true])
    expect(written()).toEqual([])
    expect([places('sent'), places('pending')]).toEqual([
      [1, 2, 3, 4],
      [5, 6],
    ])
    expect(getCampaign(database, id)?.counts).toMatchObject({ pending: 2, sent: 4 })
    const all = listCampaignLetters(database, { campaignId: id, afterPosition: 3, countMax: 2 })
    expect(all.map(({ state }) => state)).toEqual(['sent', 'pending'])
  })

  it('a letter that cannot be sent is skipped', () => {
    write({ op: 'discard', letters: [{ letterId: letterIds[1] as string }], reason: '', now: noon })
    expect(send(1, 2, 3)).toEqual([true, 'discarded', true])
    expect(written()).toEqual([2])
    expect([places('sent'), places('skipped'), places('pending')]).toEqual([[1, 3], [2], [4, 5, 6]])
  })

  it('letters sent out of order leave the letters before them pending', () => {
    expect(send(1, 3)).toEqual([true, true])
    expect(send(5)).toEqual([true])
    expect(written()).toEqual([1, 3, 5])
    expect([places('sent'), places('pending')]).toEqual([
      [1, 3, 5],
      [2, 4, 6],
    ])
    expect(send(2, 4)).toEqual([true, true])
    expect(written()).toEqual([1, 3, 5])
    expect([places('sent'), places('pending')]).toEqual([[1, 2, 3, 4, 5], [6]])
  })

  it('a letter is sent once, even if the step is repeated', () => {
    send(1, 2)
    const [item] = database.readArrays('select id from items where letter_id = ?', letterIds[0] as string)
    write(
      { op: 'lease', queue: 'work', partition: 0, holders: ['a', 'b'], now: noon },
      { op: 'complete', queue: 'work', partition: 0, ids: [item?.[0] as string], now: noon },
    )
    expect([places('resolved'), places('sent')]).toEqual([[1], [2]])
    expect(send(1, 2, 3)).toEqual(['resolved', 'redriving', true])
    expect([places('resolved'), places('sent'), places('pending')]).toEqual([[1], [2, 3], [4, 5, 6]])
  })

  it('skipping starts behind the last sent letter', () => {
    send(1, 2)
    write({ op: 'skip-letters', campaignId: id, refusal: 'cancelled', countMax: 3 })
    expect([places('sent'), places('skipped'), places('pending')]).toEqual([[1, 2], [3, 4, 5], [6]])
  })
})
