/** Reasons for which a redrive is refused. */
import { describe, expect, it } from 'vitest'
import type { RedriveRefusal } from '../../../src/storage/contract/letters.ts'
import { anOrigin, bytes, day, hour, newItems, noon } from '../../make.ts'
import { aLetter, automatic, createLetterActions, inAnHour } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const unknownId = '0'.repeat(27)

describeStores('a redrive', (given) => {
  const actions = createLetterActions(given)

  describe('refusals', () => {
    const refusalReason = async (letterId: string, how: object = {}): Promise<RedriveRefusal | 'sent'> => {
      const before = await given.storage.getLetters([letterId])
      const [result] = await actions.redrive([letterId], how)
      if (result?.isStarted !== false) return 'sent'
      expect(await given.storage.getLetters([letterId])).toEqual(before)
      return result.refusal
    }
    const to = (letterId: string, queue: string | null, edit: number | null = null) => ({
      letters: [{ letterId, queue, edit }],
    })

    it('a redrive reports unknown ids as missing and archived letters as archived', async () => {
      const { work, letters } = await actions.createQueues()
      const { ids } = await given.run({
        op: 'produce',
        queue: work,
        partition: 0,
        items: newItems(1),
        now: noon,
      })
      const [archived = ''] = await actions.produceDead(work, newItems(1))
      await actions.discard([archived])
      await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 10, now: noon })
      for (const id of [unknownId, 'no id', ids[0] ?? '']) expect(await refusalReason(id)).toBe('missing')
      expect(await refusalReason(archived)).toBe('archived')
      const letterIds = [unknownId, ids[0] ?? '', archived]
      expect((await actions.discard(letterIds)).map(({ refusal }) => refusal)).toEqual([
        'missing',
        'missing',
        'archived',
      ])
    })

    it('a letter that a consumer holds is not redriven', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const held = await actions.leaseOne({ queue: letters, partition: 0 })
      expect(await refusalReason(letterId)).toBe('leased')
      expect(await actions.discard([letterId])).toMatchObject([{ isDiscarded: false, refusal: 'leased' }])
      await actions.retryLater(held)
      // After the retry the letter has a new id and the same root id.
      expect(await refusalReason(letterId)).toBe('sent')
      expect(await actions.readLetter(letterId)).toMatchObject({
        rootId: letterId,
        state: 'leased',
        attempts: 1,
      })
      const item = await actions.leaseOne({ queue: work, partition: 0 })
      expect(await actions.declareDead(item)).toMatchObject({ changes: [{ to: 'returned', queue: letters }] })
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'waiting', retryCount: 1 })
    })

    it('a resolved or discarded letter is not redriven', async () => {
      const { work } = await actions.createQueues()
      const [resolved = '', discarded = ''] = await actions.produceDead(work, newItems(2))
      const sent = await actions.redriveOne(resolved)
      await actions.complete(await actions.leaseOne(sent))
      await actions.discard([discarded])
      const anyhow = { isDeadAllowed: true, isCapped: false }
      expect(await refusalReason(resolved, anyhow)).toBe('resolved')
      expect(await refusalReason(discarded, anyhow)).toBe('discarded')
      expect((await actions.discard([resolved, discarded])).map(({ refusal }) => refusal)).toEqual([
        'resolved',
        'discarded',
      ])
    })

    it('a letter that a consumer completed, or that died in the dead queue, is not redriven', async () => {
      const { work, letters } = await actions.createQueues({}, { attemptsMax: 1 })
      const [done = '', dead = ''] = await actions.produceDead(work, newItems(2))
      await actions.complete(await actions.leaseOne({ queue: letters, partition: 0 }))
      await actions.declareDead(await actions.leaseOne({ queue: letters, partition: 0 }))
      expect(await refusalReason(done)).toBe('resolved')
      expect(await refusalReason(dead)).toBe('dead')
      expect(await refusalReason(dead, { isDeadAllowed: true })).toBe('sent')
    })

    it('a letter at its cap is not redriven by a capped redrive', async () => {
      const letters = await given.queue({ redrive: { mode: 'manual', redrivesMax: 0, backoff: inAnHour } })
      const target = await given.queue()
      const [letterId = ''] = await actions.capture(letters, [aLetter()])
      expect(await refusalReason(letterId, to(letterId, target))).toBe('exhausted')
      expect(await refusalReason(letterId, { ...to(letterId, target), isCapped: false })).toBe('sent')
    })

    it('a letter without a target queue is not redriven', async () => {
      const { work, letters } = await actions.createQueues()
      const origins = [
        anOrigin(),
        // A topic or a webhook with the name of a queue is not that queue.
        anOrigin({ name: work }),
        anOrigin({ kind: 'webhook', name: work }),
        anOrigin({ kind: 'queue', name: 'unknown-queue', partition: 0, group: null, cluster: null }),
      ]
      const ids = await actions.capture(
        letters,
        origins.map((origin) => aLetter({ origin })),
      )
      for (const id of ids) expect(await refusalReason(id)).toBe('no-target')
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      expect(await refusalReason(letterId, to(letterId, 'unknown-queue'))).toBe('no-target')
      await given.run({ op: 'delete-queue', name: work })
      expect(await refusalReason(letterId)).toBe('no-target')
    })

    it('a captured letter is redriven to the queue with the name of its origin', async () => {
      const { work, letters } = await actions.createQueues()
      const called = { name: work, group: null, cluster: null }
      const origins = [
        anOrigin({ ...called, kind: 'http', partition: null }),
        anOrigin({ ...called, kind: 'kafka', partition: 3 }),
        anOrigin({ ...called, kind: 'queue', partition: 0 }),
      ]
      const ids = await actions.capture(
        letters,
        origins.map((origin) => aLetter({ origin })),
      )
      for (const id of ids) expect(await refusalReason(id)).toBe('sent')
      expect(await actions.listItems(work)).toHaveLength(3)
    })

    it('a letter is never redriven to a dead queue of another queue', async () => {
      const { work, letters } = await actions.createQueues()
      const elsewhere = (await actions.createQueues()).letters
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      expect(await refusalReason(letterId, to(letterId, letters))).toBe('dead-target')
      expect(await refusalReason(letterId, to(letterId, elsewhere))).toBe('dead-target')
    })

    it('a letter is never redriven to a queue that has or had captured letters', async () => {
      const { work } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const captured = await given.queue()
      const [other = ''] = await actions.capture(captured, [aLetter()])
      expect(await refusalReason(letterId, to(letterId, captured))).toBe('dead-target')
      await actions.discard([other])
      await given.run({ op: 'archive', queue: captured, endedBefore: noon + 1, countMax: 10, now: noon })
      expect(await refusalReason(letterId, to(letterId, captured))).toBe('dead-target')
    })

    it('a letter is redriven to a queue with imported items', async () => {
      const { work } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const imported = await given.queue()
      const items = [{ payload: bytes('x'), sourceId: 'elsewhere/1' }]
      await given.run({ op: 'import', queue: imported, partition: 0, items, now: noon })
      expect(await refusalReason(letterId, to(letterId, imported))).toBe('sent')
    })

    it('a letter is never redriven to its own queue', async () => {
      const letters = await given.queue()
      const [letterId = ''] = await actions.capture(letters, [aLetter()])
      expect(await refusalReason(letterId, to(letterId, letters))).toBe('dead-target')
    })

    it('a letter is not redriven to its origin after that became a dead queue', async () => {
      const letters = await given.queue()
      const origin = anOrigin({ kind: 'queue', name: letters, partition: 0, group: null, cluster: null })
      const store = await given.queue()
      const [letterId = ''] = await actions.capture(store, [aLetter({ origin })])
      await given.queue({ deadQueue: letters })
      expect(await refusalReason(letterId)).toBe('dead-target')
    })

    it('a redrive with an unknown edited version is refused', async () => {
      const { work } = await actions.createQueues()
      const [letterId = '', other = ''] = await actions.produceDead(work, newItems(2))
      await given.run({ op: 'edit-letter', letterId: other, payload: bytes('x'), actor: 'ann', now: noon })
      expect(await refusalReason(letterId, to(letterId, null, 1))).toBe('no-edit')
      expect(await refusalReason(other, to(other, null, 2))).toBe('no-edit')
      expect(await refusalReason(other, to(other, null, 1))).toBe('sent')
    })

    it('a letter named twice is refused as redriving, whatever else prevents the second redrive', async () => {
      const { work, letters } = await actions.createQueues()
      const [first = '', second = '', third = ''] = await actions.produceDead(work, newItems(3))
      const results = await actions.redrive([], {
        letters: [
          { letterId: first, queue: null },
          { letterId: first, queue: 'unknown-queue' },
          { letterId: second, queue: null },
          { letterId: second, queue: letters },
          { letterId: third, queue: 'unknown-queue' },
          { letterId: third, queue: null },
          { letterId: third, queue: null, edit: 7 },
        ],
      })
      expect(results.map((result) => (result.isStarted ? 'sent' : result.refusal))).toEqual([
        'sent',
        'redriving',
        'sent',
        'redriving',
        'no-target',
        'sent',
        'redriving',
      ])
      expect(await actions.listItems(work)).toHaveLength(3)
    })

    it('a redrive of due letters refuses letters that are not due', async () => {
      const { work } = await actions.createQueues({}, { redrive: automatic })
      const manual = (await actions.createQueues()).work
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const [never = ''] = await actions.produceDead(manual, newItems(1))
      expect(await actions.readLetter(letterId)).toMatchObject({ letter: { nextRedriveAt: noon + hour } })
      const due = (now: number) => ({ isDueOnly: true, now })
      expect(await refusalReason(letterId, due(noon + hour - 1))).toBe('not-due')
      expect(await refusalReason(never, due(noon + 1_000 * day))).toBe('not-due')
      expect(await refusalReason(letterId, due(noon + hour))).toBe('sent')
      expect(await actions.readLetter(letterId)).toMatchObject({ letter: { nextRedriveAt: null } })
    })
  })
})
