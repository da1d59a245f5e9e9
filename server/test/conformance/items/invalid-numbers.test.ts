import { expect, it } from 'vitest'
import { bytes, newItems, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('invalid numbers', (given) => {
  it.each([
    ['expireDeadline', 2 ** 60],
    ['expireDeadline', Number.NaN],
    ['availableAt', noon + 0.5],
    ['priority', 2 ** 40],
    ['priority', 0.5],
    ['attemptsMax', -1],
    ['retryCount', Number.POSITIVE_INFINITY],
  ])(
    'an invalid number in %s (%d) is refused with the field name, and nothing is stored',
    async (field, value) => {
      const queue = await given.queue()
      const item = { payload: bytes('x'), [field]: value }
      const command = {
        op: 'produce',
        queue,
        partition: 0,
        items: [...newItems(1), item],
        now: noon,
      } as const
      const error = await expectRefusal(given.run(command), 'BAD_REQUEST')
      expect(error.message).toContain(field)
      expect(await given.storage.listItems({ queue, countMax: 10 })).toEqual([])
    },
  )

  it('a queue with an invalid number of partitions or an empty name is refused', async () => {
    for (const queue of [{ name: '' }, { name: 'q', partitions: 0 }, { name: 'q', partitions: 1.5 }]) {
      await expectRefusal(given.run({ op: 'create-queue', queue, now: noon }), 'BAD_REQUEST')
    }
  })

  it('an invalid countMax is refused', async () => {
    for (const countMax of [0, -1, Number.NaN]) {
      await expectRefusal(given.run({ op: 'advance', now: noon, countMax }), 'BAD_REQUEST')
    }
  })
})
