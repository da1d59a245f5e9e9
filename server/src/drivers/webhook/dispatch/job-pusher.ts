/** Pushes one job, and passes its outcome on. */
import { type Clock, usPerMs } from '../../../core/time/instant.ts'
import { readTraceHeaders } from '../../../core/trace/trace-headers.ts'
import type { OpenSpan, Tracing } from '../../../core/trace/tracing.ts'
import type { Attempt } from '../../../core/webhook/attempt.ts'
import { decideDeliveryOutcome } from '../../../core/webhook/delivery/delivery-outcome.ts'
import { consumerPolicy } from '../../../core/webhook/delivery-policy.ts'
import type { NewAttempt } from '../../../storage/contract/deliveries.ts'
import type { WebhookBroker } from '../broker/broker.ts'
import type { Sender } from '../push/sender.ts'
import type { ConsumerLane, ReadyJob } from './consumer-lane.ts'
import { createPush } from './create-push.ts'
import type { FigureRecorder } from './delivery-figures.ts'
import { attemptsPerJobMax, type DispatchRules, outcomeRulesOf } from './delivery-rules.ts'
import type { HealthKeeper } from './health-keeper.ts'
import type { MessageLoader } from './message-loader.ts'
import type { OutcomeWriter } from './outcome-writer.ts'
import type { PushScheduler } from './push-scheduler.ts'

export type PusherParts = Readonly<{
  broker: WebhookBroker
  sender: Sender
  clock: Clock
  rules: DispatchRules
  scheduler: PushScheduler
  loader: MessageLoader
  outcomes: OutcomeWriter
  health: HealthKeeper
  figures: FigureRecorder
  /** Undefined: no spans are created. */
  tracing?: Tracing
  onError(error: unknown): void
  onAttempt?(result: string, latencyMs: number): void
}>

export class JobPusher {
  readonly #parts: PusherParts
  readonly #pushes = new Set<Promise<void>>()

  constructor(parts: PusherParts) {
    this.#parts = parts
  }

  push(lane: ConsumerLane, job: ReadyJob, onEnd: () => void): void {
    const { scheduler, loader, onError } = this.#parts
    scheduler.inFlight += 1
    lane.inFlight.set(job.item.id, performance.now())
    const push = this.#push(lane, job)
      .catch(onError)
      .finally(() => {
        this.#pushes.delete(push)
        scheduler.inFlight -= 1
        lane.inFlight.delete(job.item.id)
        loader.release(lane, job)
        scheduler.add(lane)
        onEnd()
      })
    this.#pushes.add(push)
  }

  /** Waits for the pushes in progress, and then aborts those that are left: they do not count as attempts. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#parts.sender.abort(), graceMs)
    while (this.#pushes.size > 0) await Promise.all(this.#pushes)
    clearTimeout(timer)
  }

  #startSpan(
    { channelId }: ConsumerLane['consumer'],
    { headers }: ReadyJob['message'],
  ): OpenSpan | undefined {
    const { tracing } = this.#parts
    if (tracing === undefined) return undefined
    return tracing.start({ operation: 'push', destination: channelId, parent: readTraceHeaders(headers) })
  }

  async #push(lane: ConsumerLane, job: ReadyJob): Promise<void> {
    const { broker, sender, clock, rules, health, figures, outcomes, onAttempt } = this.#parts
    const { item, message } = job
    const { consumer, secrets } = lane
    const isProbe = lane.isProbing
    const now = clock.now()
    const timeoutMs = lane.pushTimeoutMs(item, now, rules.timeoutMs)
    const span = this.#startSpan(consumer, message)
    const facts = {
      ...{ consumer, secrets, message, requestId: broker.createId(), now, timeoutMs },
      trace: span?.context,
    }
    const startedMs = performance.now()
    const attempt = await sender.send(createPush(facts, rules))
    if (span !== undefined) endSpan(span, job, attempt)
    const endedAt = clock.now()
    const { retry } = consumerPolicy('push', broker.rules)
    const outcome = decideDeliveryOutcome(
      attempt,
      item.attempts,
      outcomeRulesOf(lane.delivery, rules, retry ?? { kind: 'fixed', delayUs: 0, jitter: 0 }),
      endedAt,
    )
    const isCounted = outcome.kind !== 'returned'
    outcomes.add({
      queue: consumer.queue,
      itemId: item.id,
      leaseDeadline: item.lease.deadline,
      outcome,
      payloadBytes: outcome.kind === 'delivered' ? 0 : message.payload.byteLength,
      attempt:
        isCounted && item.attempts <= attemptsPerJobMax
          ? toNewAttempt(attempt, {
              consumer: consumer.number,
              job: message.jobId,
              ordinal: item.attempts,
              startedAt: now,
            })
          : null,
    })
    if (!isCounted) {
      if (isProbe) health.cancelProbe(lane)
      return
    }
    lane.recordDuration(performance.now() - startedMs)
    health.record(lane, attempt.isDelivered, isProbe)
    figures.count(consumer.number, attempt.isDelivered, attempt.latencyMs)
    onAttempt?.(attempt.failure?.kind ?? 'delivered', attempt.latencyMs)
  }
}

function endSpan(span: OpenSpan, { item, message }: ReadyJob, attempt: Attempt): void {
  const { status, failure } = attempt
  span.end({
    ids: [message.messageId],
    attributes: {
      'redrive.job_id': message.jobId,
      'redrive.attempt': item.attempts,
      ...(status !== null && { 'http.response.status_code': status }),
    },
    ...(failure !== null && { error: Object.assign(new Error(failure.message), { name: failure.kind }) }),
  })
}

export function toNewAttempt(
  attempt: Attempt,
  of: Pick<NewAttempt, 'consumer' | 'job' | 'ordinal' | 'startedAt'>,
): NewAttempt {
  const { response, failure } = attempt
  return {
    ...of,
    latencyUs: Math.round(attempt.latencyMs * usPerMs),
    address: attempt.address,
    status: attempt.status,
    contentType: response?.contentType ?? null,
    body: response?.bytes ?? null,
    isTruncated: response?.isTruncated ?? false,
    failure:
      failure === null
        ? null
        : {
            kind: failure.kind,
            errorClass: failure.errorClass,
            errorCode: failure.errorCode,
            message: failure.message,
          },
  }
}
