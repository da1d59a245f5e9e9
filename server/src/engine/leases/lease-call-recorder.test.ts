import { describe, expect, it } from 'vitest'
import { noon, second } from '../../../test/make.ts'
import type { Command } from '../../storage/contract/storage.ts'
import type { Writer } from '../writes/writer.ts'
import { createLeaseCallRecorder } from './lease-call-recorder.ts'

describe('recording of lease calls', () => {
  const open = () => {
    const written: Command[] = []
    const calls = new Map<string, number>()
    let now = noon
    const write = async (commands: readonly Command[]) => {
      written.push(...commands)
      return commands.map(() => undefined)
    }
    const recorder = createLeaseCallRecorder({
      writer: { write } as unknown as Writer,
      clock: { now: () => now },
      listCalls: () => [...calls].map(([queue, at]) => ({ queue, at })),
    })
    const passAt = async (at: number) => {
      now = at
      await recorder.pass()
      return written.splice(0).flatMap((command) => ('calls' in command ? command.calls : []))
    }
    return { calls, passAt }
  }

  it('a first call is recorded at once, and a worker that keeps asking once in 30 s', async () => {
    const { calls, passAt } = open()
    expect(await passAt(noon)).toEqual([])
    calls.set('orders', noon)
    expect(await passAt(noon + second)).toEqual([{ queue: 'orders', at: noon }])
    for (let at = 5; at < 30; at += 5) {
      calls.set('orders', noon + at * second)
      expect(await passAt(noon + at * second)).toEqual([])
    }
    const later = noon + 31 * second
    calls.set('orders', later)
    expect(await passAt(later)).toEqual([{ queue: 'orders', at: later }])
    // No worker asked since then.
    expect(await passAt(noon + 300 * second)).toEqual([])
  })

  it('many queues are recorded in one write per 1,000', async () => {
    const { calls, passAt } = open()
    for (let number = 0; number < 2_500; number++) calls.set(`queue-${number}`, noon)
    expect(await passAt(noon)).toHaveLength(2_500)
  })

  it('a queue that was deleted and created again is recorded again', async () => {
    const { calls, passAt } = open()
    calls.set('orders', noon)
    await passAt(noon)
    calls.delete('orders')
    await passAt(noon + second)
    calls.set('orders', noon + 2 * second)
    expect(await passAt(noon + 2 * second)).toHaveLength(1)
  })
})
