/** The breakers of this server, and the consumers that fail for too long. */
import type { Clock, Instant } from '../../../core/time/instant.ts'
import {
  cancelProbe,
  countAttempt,
  endProbe,
  findReasonToOpen,
  newBreakerCounts,
  openBreaker,
  startProbe,
} from '../../../core/webhook/delivery/breaker.ts'
import {
  type ConsumerDelivery,
  disableIfFailing,
  recordHealth,
} from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { AuditEntry } from '../../../storage/contract/audit.ts'
import type { DeliveryChange, PutDelivery } from '../../../storage/contract/deliveries.ts'
import type { Consumer } from '../../../storage/contract/webhooks.ts'
import type { ConsumerLane } from './consumer-lane.ts'
import { breakerRulesOf, type DispatchRules } from './delivery-rules.ts'
import type { LaneRegistry } from './lane-registry.ts'
import type { OutcomeWriter } from './outcome-writer.ts'

export type HealthParts = Readonly<{
  registry: Pick<LaneRegistry, 'reload' | 'lanes'>
  outcomes: Pick<OutcomeWriter, 'change'>
  clock: Clock
  rules: DispatchRules
  onError(error: unknown): void
  /** Called after the change is stored. */
  onHealthChange?: HealthObserver
}>

export type HealthObserver = (consumer: Consumer, change: DeliveryChange, reason: string) => void

export class HealthKeeper {
  readonly #parts: HealthParts
  /** Consumers with a change that is being written: one at a time, because each needs the next version. */
  readonly #writing = new Set<ConsumerLane>()

  constructor(parts: HealthParts) {
    this.#parts = parts
  }

  record(lane: ConsumerLane, isDelivered: boolean, isProbe: boolean): void {
    const { clock, rules } = this.#parts
    const now = clock.now()
    const breakerRules = breakerRulesOf(lane.delivery, rules)
    if (!isDelivered) lane.lastFailedAt = now
    const healthy = recordHealth(lane.delivery, isDelivered, now)
    if (healthy !== lane.delivery) lane.isHealthDirty = true
    lane.delivery = healthy
    if (isProbe) {
      lane.isProbing = false
      if (isDelivered) lane.counts = newBreakerCounts(now)
      const breaker = endProbe(lane.delivery.breaker, isDelivered, breakerRules, now)
      const change = breaker.state === 'closed' ? 'breaker-closed' : undefined
      this.#change(lane, { ...lane.delivery, breaker }, change)
      return
    }
    if (lane.delivery.breaker.state !== 'closed') return
    lane.counts = countAttempt(lane.counts, isDelivered, breakerRules, now)
    const reason = findReasonToOpen(lane.counts, breakerRules)
    if (reason === undefined) return
    const breaker = openBreaker(lane.delivery.breaker, reason, breakerRules, now)
    this.#change(lane, { ...lane.delivery, breaker }, 'breaker-opened')
  }

  /** Whether this server may push a probe now. It has the job of the probe. */
  async tryStartProbe(lane: ConsumerLane): Promise<boolean> {
    const { clock, rules } = this.#parts
    const breaker = startProbe(lane.delivery.breaker, breakerRulesOf(lane.delivery, rules), clock.now())
    if (breaker === undefined || this.#writing.has(lane)) return false
    lane.isProbing = true
    const isPut = await this.#change(lane, { ...lane.delivery, breaker }, undefined)
    if (!isPut) lane.isProbing = false
    return isPut
  }

  /** The probe was not pushed. */
  cancelProbe(lane: ConsumerLane): void {
    if (!lane.isProbing) return
    lane.isProbing = false
    const breaker = cancelProbe(lane.delivery.breaker, this.#parts.clock.now())
    this.#change(lane, { ...lane.delivery, breaker }, undefined)
  }

  /** Stores what changed the health, and disables consumers with nothing but failures. */
  pass(): void {
    const { registry, rules, clock } = this.#parts
    const now = clock.now()
    for (const lane of registry.lanes) {
      if (this.#writing.has(lane)) continue
      const disableAfterMs = lane.delivery.settings.disableAfterMs ?? rules.disableAfterMs
      const next = disableIfFailing(lane.delivery, lane.lastFailedAt, disableAfterMs, now)
      if (next !== lane.delivery) this.#change(lane, next, 'disabled')
      else if (lane.isHealthDirty) this.#change(lane, next, undefined)
    }
  }

  /** Applies the change here, and stores it. Another server may have been faster: then its state counts. */
  #change(lane: ConsumerLane, next: ConsumerDelivery, change: DeliveryChange | undefined): Promise<boolean> {
    const { outcomes, registry, clock, onError, onHealthChange } = this.#parts
    lane.delivery = next
    lane.isHealthDirty = false
    this.#writing.add(lane)
    const command: PutDelivery = {
      op: 'put-delivery',
      consumer: lane.consumer.number,
      version: lane.version,
      document: next,
      now: clock.now(),
      ...(change !== undefined && { change }),
      ...(change === 'disabled' && { entry: createDisableEntry(lane, next, clock.now()) }),
    }
    return new Promise((resolve) => {
      const onWritten = (isPut: boolean): void => {
        this.#writing.delete(lane)
        // A refresh may have read the new version already, or another one: adding 1 to that would name a
        // version that is not stored yet, and the lane would ignore the change that gets it.
        if (isPut && lane.version === command.version) lane.version += 1
        else registry.reload(lane).catch(onError)
        if (isPut && change !== undefined) onHealthChange?.(lane.consumer, change, reasonOf(next))
        resolve(isPut)
      }
      outcomes.change({ command, onWritten })
    })
  }
}

function reasonOf({ disabled, breaker }: ConsumerDelivery): string {
  return disabled?.reason ?? ('reason' in breaker ? breaker.reason : '')
}

function createDisableEntry(
  { consumer }: ConsumerLane,
  { disabled, failingSince }: ConsumerDelivery,
  at: Instant,
): AuditEntry {
  return {
    at,
    actor: 'system',
    action: 'webhook.consumer.disable',
    target: `${consumer.channelId}/${consumer.id}`,
    reason: disabled?.reason ?? '',
    requestId: '',
    details: { failingSince },
  }
}
