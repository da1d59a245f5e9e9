/** The parts of a server that handle webhooks: the broker, the dispatcher and the changes by operators. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/time/instant.ts'
import { addDuration } from '../../core/time/instant.ts'
import type { Tracing } from '../../core/trace/tracing.ts'
import type { ConfiguredWebhooks } from '../../core/webhook/configured.ts'
import type { DeliveryRules } from '../../core/webhook/delivery-policy.ts'
import type { Engine } from '../../engine/engine.ts'
import { createLoop, type Loop } from '../../engine/loop.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { WebhookBroker } from './broker/broker.ts'
import { createBroker } from './broker/create-broker.ts'
import { createToken } from './broker/create-token.ts'
import { applyConfiguration } from './configuration/apply-configuration.ts'
import { createDeliveries } from './deliveries/create-deliveries.ts'
import type { Deliveries } from './deliveries/deliveries.ts'
import { createDispatcher } from './dispatch/create-dispatcher.ts'
import type { DispatchRules } from './dispatch/delivery-rules.ts'
import type { Dispatcher } from './dispatch/dispatcher.ts'
import type { HealthObserver } from './dispatch/health-keeper.ts'
import { createMessageArchive } from './pruning/message-archive.ts'
import { createMessagePruner } from './pruning/message-pruner.ts'
import { createSender } from './push/create-sender.ts'
import type { AddressRules } from './push/sender.ts'

export interface Webhooks {
  readonly broker: WebhookBroker
  readonly dispatcher: Dispatcher
  readonly deliveries: Deliveries
  /** The same, for a caller who sees only what this store shows: consumers that it hides do not exist. */
  within(storage: StoreReads): Webhooks
  /** Creates or overwrites the configured objects, if the list or the rules of delivery changed. */
  configure(configured: ConfiguredWebhooks): Promise<void>
  /** Starts to push, and the background work. */
  start(): void
  /** Returns the jobs that have not started, and waits for pushes in progress up to `graceMs`. */
  stop(graceMs: number): Promise<void>
}

export type WebhooksParts = Readonly<{
  storage: () => StoreReads
  engine: () => Engine
  clock: Clock
  deliveryRules: DeliveryRules
  dispatchRules: DispatchRules
  addresses: AddressRules
  /** Default: every 5 s, and 100 messages together. */
  schedule?: Readonly<{ intervalMs: number; batchMax: number }>
  /** False: messages that were left without jobs wait for another server. Default true. */
  isRecovering?: boolean
  /** Undefined: no spans are created. */
  tracing?: Tracing
  /** Absent: this server prunes no messages. */
  pruning?: PruningOptions
  /** Called for each attempt, with `delivered` or the kind of its failure. */
  onAttempt(result: string, latencyMs: number): void
  /** A breaker opened or closed, or a consumer was disabled. */
  onHealthChange?: HealthObserver
  onError(error: unknown): void
}>

export type PruningOptions = Readonly<{
  nodeName: string
  folder: string
  fileBytesMax: number
  retentionUs: number
  intervalMs: number
}>

const scheduleDefault = { intervalMs: 5_000, batchMax: 100 }
const pruneMs = 10 * 60 * 1_000
const prunedMax = 5_000

export function createWebhooks(parts: WebhooksParts): Webhooks {
  const { storage, engine, clock, dispatchRules: rules, deliveryRules, onAttempt, onError } = parts
  const traced = parts.tracing === undefined ? {} : { tracing: parts.tracing }
  const sender = createSender({ addresses: parts.addresses, timeoutMs: rules.timeoutMs })
  const broker = createBroker({ storage, engine, clock, rules: deliveryRules, ...traced, onError })
  const dispatcher = createDispatcher({
    storage,
    engine,
    broker,
    sender,
    clock,
    rules,
    ...traced,
    onError,
    onAttempt,
    ...(parts.onHealthChange !== undefined && { onHealthChange: parts.onHealthChange }),
  })
  const recoveryMs = Math.max(deliveryRules.rationalDelayUs / 1_000, 100)
  const { intervalMs, batchMax } = parts.schedule ?? scheduleDefault
  const recoveryLoop = createLoop(recoveryMs, () => repeat(broker.recover), onError)
  const loops = [
    ...((parts.isRecovering ?? true) ? [recoveryLoop] : []),
    createLoop(intervalMs, () => repeat(() => broker.dispatchScheduled(batchMax)), onError),
    createLoop(pruneMs, () => prune(parts), onError),
    ...createPruneLoop(parts),
  ]
  const deliveryParts = { storage, engine, broker, sender, clock, rules }
  const webhooks: Webhooks = {
    broker,
    dispatcher,
    deliveries: createDeliveries(deliveryParts),
    within: (visible) => ({
      ...webhooks,
      deliveries: createDeliveries({ ...deliveryParts, storage: () => visible }),
    }),
    configure: (configured) =>
      applyConfiguration(
        {
          storage: storage(),
          engine: engine(),
          clock,
          rules: deliveryRules,
          createId: broker.createId,
          createToken,
        },
        configured,
      ),
    start: () => {
      dispatcher.start()
      for (const loop of loops) loop.start()
    },
    stop: async (graceMs) => {
      await Promise.all(loops.map((loop) => loop.stop()))
      await dispatcher.stop(graceMs)
      await broker.close()
    },
  }
  return webhooks
}

/** Exports messages after their retention, and removes them. */
function createPruneLoop({ storage, engine, clock, pruning, onError }: WebhooksParts): readonly Loop[] {
  if (pruning === undefined) return []
  const { retentionUs, intervalMs } = pruning
  const archive = createMessageArchive({ ...pruning, clock })
  const pruner = createMessagePruner({ storage, engine, clock, archive, retentionUs, owner: randomUUID() })
  const loop = createLoop(intervalMs, async (signal) => void (await pruner.pass(signal)), onError)
  return [{ start: loop.start, stop: () => loop.stop().then(pruner.close) }]
}

/** Until nothing is left. */
async function repeat(pass: () => Promise<boolean>): Promise<void> {
  while (await pass());
}

/** Removes attempts after their retention, in steps. Several servers may do so at the same time. */
async function prune({ engine, clock, dispatchRules }: WebhooksParts): Promise<void> {
  const before = addDuration(clock.now(), -dispatchRules.attemptRetentionUs)
  for (;;) {
    const [{ removed }] = await engine().write([{ op: 'prune-deliveries', before, countMax: prunedMax }])
    if (removed < prunedMax) return
  }
}
