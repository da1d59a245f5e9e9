/** Servers that are killed before they send a notification, and before they store that it was sent. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { minute, noon } from '../make.ts'
import { type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import type { NotifyTask } from './processes/notify.ts'

const program = fileURLToPath(new URL('processes/notify.ts', import.meta.url))

describe.each(['SQLite file', 'PostgreSQL'] as const)('a server that is killed (%s)', (name) => {
  describe('', needsOf(name), () => {
    let store: TestStore
    let receiver: Receiver
    let ids: unknown[]
    beforeEach(async () => {
      store = await createTestStore(name)
      ids = []
      receiver = await startReceiver(({ headers }, response) => {
        ids.push(headers['webhook-id'])
        response.end('ok')
      })
    })
    afterEach(async () => {
      await receiver.close()
      await store.drop()
    })

    /** Resolves with the signal that ended the process. */
    const run = async (task: Pick<NotifyTask, 'isQueueing' | 'kill' | 'now'>): Promise<string | null> => {
      const full: NotifyTask = { ...task, store: store.target, url: receiver.url }
      const child = spawn(process.execPath, [program, JSON.stringify(full)], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let text = ''
      child.stderr.on('data', (data: Buffer) => {
        text += data.toString()
      })
      return new Promise((resolve, reject) => {
        child.once('exit', (code, signal) =>
          code === null || code === 0 ? resolve(signal) : reject(new Error(text)),
        )
      })
    }

    it('after it queued a notification loses nothing: the next server sends it once', async () => {
      expect(await run({ isQueueing: true, kill: 'queued', now: noon })).toBe('SIGKILL')
      expect(ids).toEqual([])
      expect(await run({ isQueueing: false, kill: null, now: noon + minute })).toBeNull()
      expect(ids).toEqual(['n1'])
    })

    it('after it sent a notification: the next server sends it again, with the same id', async () => {
      expect(await run({ isQueueing: true, kill: 'sent', now: noon })).toBe('SIGKILL')
      expect(ids).toEqual(['n1'])
      expect(await run({ isQueueing: false, kill: null, now: noon + 2 * minute })).toBeNull()
      expect(ids).toEqual(['n1', 'n1'])
    })
  })
})
