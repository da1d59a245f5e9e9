/**
 * Store features that the letters layer depends on: imports that name existing letters, and required campaign
 * versions.
 */

import { expect, it } from 'vitest'
import { toRootId } from '../../../src/core/ids/ids.ts'
import { aFailure, anOrigin, bytes, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

const aLetter = (sourceId: string) => ({
  sourceId,
  payload: bytes(sourceId),
  origin: anOrigin(),
  failure: aFailure(),
})
const missing = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'

describeStores('a repeated import', (given) => {
  const imported = (queue: string, ...sourceIds: string[]) =>
    given.run({ op: 'import', queue, partition: 0, items: sourceIds.map(aLetter), now: noon })

  it('a repeated import names the existing letter, also in another partition or discarded', async () => {
    const queue = await given.queue({ partitions: 2 })
    const [a, b] = await imported(queue, 'a', 'b')
    await given.run({
      op: 'discard',
      letters: [{ letterId: toRootId(b?.id ?? '') }],
      reason: 'no use',
      now: noon,
    })
    const again = await given.run({
      op: 'import',
      queue,
      partition: 1,
      items: ['b', 'c', 'a'].map(aLetter),
      now: noon + 1,
    })
    expect(again).toMatchObject([
      { id: null, existingId: b?.id },
      { id: expect.any(String) },
      { id: null, existingId: a?.id },
    ])
    expect(again[1]?.existingId).toBeUndefined()
  })

  it('a repeated import names the existing letter by its root id', async () => {
    const queue = await given.queue()
    const [made] = await imported(queue, 'a')
    const [[leased]] = await given.storage.write([
      { op: 'lease', queue, partition: 0, holders: ['w'], now: noon },
    ])
    const given0 = { isDead: false, error: null, chance: 0, availableAt: null }
    await given.run({
      op: 'retry',
      queue,
      partition: 0,
      items: [{ id: leased?.id ?? '', ...given0 }],
      now: noon,
    })
    expect(await imported(queue, 'a')).toMatchObject([{ id: null, existingId: made?.id }])
  })

  it('a source id repeated within one import names the first letter', async () => {
    const queue = await given.queue()
    const [first, second] = await imported(queue, 'a', 'a')
    expect(second).toMatchObject({ id: null, existingId: first?.id })
  })
})

describeStores('a campaign with a required version', (given) => {
  let campaigns = 0
  const anId = () => `${missing.slice(0, -3)}${String(++campaigns).padStart(3, '0')}`
  const put = (id: string, version: number, isRequired: boolean) =>
    ({ op: 'put-campaign', id, version, state: 'running', document: { version }, isRequired }) as const

  it('a campaign with an outdated required version rejects the whole write', async () => {
    const queue = await given.queue()
    const [made] = await given.run({
      op: 'import',
      queue,
      partition: 0,
      items: [aLetter('a')],
      now: noon,
    })
    const letterId = toRootId(made?.id ?? '')
    const id = anId()
    await given.run(put(id, 0, true))
    await given.run(put(id, 1, true))
    const late = [
      put(id, 1, true),
      { op: 'discard', letters: [{ letterId }], reason: 'too late', now: noon },
    ] as const
    await expectRefusal(given.storage.write(late), 'CAMPAIGN_CHANGED')
    await expectRefusal(given.storage.write([late[1], late[0]]), 'CAMPAIGN_CHANGED')
    expect(await given.storage.getLetters([letterId])).toMatchObject([{ state: 'waiting' }])
    expect(await given.storage.getCampaign(id)).toMatchObject({ version: 2, document: { version: 1 } })
    await expectRefusal(given.storage.write([put(id, 0, true)]), 'CAMPAIGN_CHANGED')
    await expectRefusal(given.storage.write([put(anId(), 7, true)]), 'CAMPAIGN_CHANGED')
  })

  it('a campaign with an outdated optional version reports it', async () => {
    const id = anId()
    expect(await given.run(put(id, 0, false))).toEqual({ isPut: true })
    expect(await given.run(put(id, 0, false))).toEqual({ isPut: false })
    expect(await given.run(put(id, 5, false))).toEqual({ isPut: false })
  })

  it('one of many concurrent campaign updates succeeds', async () => {
    const id = anId()
    await given.run(put(id, 0, true))
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => given.run(put(id, 1, true))))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await given.storage.getCampaign(id)).toMatchObject({ version: 2 })
  })
})
