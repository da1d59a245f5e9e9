/** Workers can name the cause of a failure: the name decides the group. */
import { expect, it } from 'vitest'
import { aFailure, anOrigin, newItems } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('causes that a worker named', (given) => {
  const actions = createLetterActions(given)
  const failing = (message: string, fingerprint?: string, errorClass = 'E') =>
    aLetter({
      failure: aFailure({
        errorClass,
        message,
        stack: '',
        ...(fingerprint !== undefined && { fingerprint }),
      }),
      origin: anOrigin({ name: 'shop' }),
    })
  const groups = (queue: string) =>
    given.storage.listGroups({ filter: { queues: [queue] }, isEmptyToo: false, countMax: 100 })
  const causes = () => given.storage.listCauses({ filter: {}, countMax: 100 })

  it('letters with one name are one group, whatever their class and message, and one cause in all queues', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await actions.capture(one, [
      failing('no route to host', 'provider-down', 'Connect'),
      failing('HTTP 503', 'provider-down', 'Http'),
      failing('HTTP 503', undefined, 'Http'),
    ])
    await actions.capture(two, [failing('read timeout', 'provider-down')])
    expect((await groups(one)).map(({ title, count }) => [title, count])).toEqual([
      ['no route to host', 2],
      ['HTTP 503', 1],
    ])
    expect((await causes()).map(({ count }) => count)).toEqual([3, 1])
    const byClass = await given.storage.countLetters({ filter: { queues: [one] }, by: ['errorClass'] })
    expect(byClass.toSorted((a, b) => a.count - b.count)).toEqual([
      { count: 1, errorClass: 'Connect' },
      { count: 2, errorClass: 'Http' },
    ])
  })

  it('equal errors with different names are different groups', async () => {
    const queue = await given.queue()
    await actions.capture(queue, [failing('refused', 'card'), failing('refused', 'iban'), failing('refused')])
    expect((await groups(queue)).map(({ count }) => count)).toEqual([1, 1, 1])
  })

  it('an item that a worker fails with a name becomes a letter of that group', async () => {
    const { work, letters } = await actions.createQueues()
    const error = { errorCode: 'r', errorClass: 'E', message: 'm', stack: '', fingerprint: 'by-worker' }
    await actions.produceDead(work, newItems(1), error)
    await actions.produceDead(work, newItems(1), { ...error, message: 'another message', errorClass: 'F' })
    expect(await groups(letters)).toMatchObject([{ title: 'm', count: 2 }])
  })

  it('a group of a name stays merged after a person merged it', async () => {
    const queue = await given.queue()
    await actions.capture(queue, [failing('a', 'one'), failing('a', 'one'), failing('b', 'two')])
    const [a, b] = (await groups(queue)).map(({ id }) => id)
    await given.run({ op: 'merge-groups', into: a ?? 0, groupIds: [b ?? 0] })
    await actions.capture(queue, [failing('c', 'two', 'Another')])
    expect(await groups(queue)).toMatchObject([{ id: a, count: 4 }])
  })
})
