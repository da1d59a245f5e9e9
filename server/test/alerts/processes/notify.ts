/** A server that queues and sends notifications, and kills itself at a given point. */
import { createChannels } from '../../../src/drivers/notify/channels.ts'
import { createNotifier } from '../../../src/drivers/notify/create-notifier.ts'
import { alertQueue } from '../../../src/drivers/notify/queue/alert-queue.ts'
import { createEngine } from '../../../src/engine/create-engine.ts'
import { openStorage, type StoreTarget } from '../../../src/storage/open-storage.ts'
import { aNotification } from '../notifications.ts'

export type NotifyTask = Readonly<{
  store: StoreTarget
  url: string
  now: number
  /** Whether it queues the notification. Otherwise it sends what is queued. */
  isQueueing: boolean
  /** `queued`: after the notification was queued. `sent`: after it was sent, before that is stored. */
  kill: 'queued' | 'sent' | null
}>

const { store, url, now, isQueueing, kill } = JSON.parse(process.argv[2] ?? '') as NotifyTask
const clock = { now: () => now }
const storage = await openStorage(store, { clock })
const engine = createEngine(storage, { clock, isTicking: false })
const die = (): void => void process.kill(process.pid, 'SIGKILL')
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const configured = {
  name: 'hook',
  namespace: '_system',
  kind: 'webhook',
  shown: { url },
  secrets: { secret },
} as const
const notifier = createNotifier({
  engine: () => ({
    ...engine,
    write: (commands) => {
      if (kill === 'sent' && commands.some(({ op }) => op === 'complete')) die()
      return engine.write(commands)
    },
  }),
  storage: () => storage,
  clock,
  channels: createChannels<string>({
    configured: [configured],
    readSecret: async (text) => text,
    storage: () => storage,
    engine: () => engine,
    clock,
  }),
  addresses: { isLoopbackAllowed: true, allowed: [] },
  timeoutMs: 5_000,
  giveUpUs: 86_400_000_000,
  onAttempt: () => undefined,
  onError: (error) => console.error(error),
})
await notifier.prepare()
if (isQueueing) await engine.write(notifier.toCommands(aNotification(), ['hook']))
if (kill === 'queued') die()
await engine.advance()
notifier.start()
while ((await storage.listItems({ queue: alertQueue, countMax: 1 })).length > 0) {
  await new Promise((resolve) => setTimeout(resolve, 20))
}
await notifier.stop(1_000)
await engine.close()
await storage.close()
