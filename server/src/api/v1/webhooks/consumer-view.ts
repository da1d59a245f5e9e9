/** A webhook consumer in answers. */
import { type Static, Type } from 'typebox'
import { redactUrl } from '../../../core/redaction/redaction.ts'
import { formatDuration } from '../../../core/time/duration.ts'
import { usPerMs } from '../../../core/time/instant.ts'
import { newDelivery, readDeliveryStatus } from '../../../core/webhook/delivery/consumer-delivery.ts'
import { readPercentile } from '../../../core/webhook/delivery/latency.ts'
import { type ConsumerReport, figureMinutes } from '../../../drivers/webhook/deliveries/deliveries.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { durationView } from '../values/duration.ts'
import { formatTimeOrNull, nullable, nullableTime } from '../values/schemas.ts'

const count = (description: string) => Type.Integer({ description })

const BreakerView = component(
  'CircuitBreaker',
  Type.Object(
    {
      state: Type.Enum(['closed', 'open', 'half-open'], {
        description: 'open: the jobs are held. half-open: one job is pushed as a probe.',
      }),
      opened_at: nullableTime('When the breaker opened; null: it is closed.'),
      probe_at: nullableTime('When the next probe may start; null: the breaker is closed.'),
      failed_probes: count('Probes that failed since the breaker opened.'),
      reason: Type.String({ description: 'Why the breaker opened; empty: it is closed.' }),
    },
    { description: 'The circuit breaker of the consumer. While it is open, jobs wait and use no attempts.' },
  ),
)

const stopped = (description: string) =>
  nullable(
    Type.Object({
      at: Type.String({ format: 'date-time', description: 'Since when.' }),
      reason: Type.String({ description: 'The reason that was given.' }),
    }),
    description,
  )

export const settingTexts = {
  parallel_max: 'Pushes at the same time, by all servers together.',
  pushes_per_second_max: 'Pushes per second, by all servers together.',
  timeout: 'How long a push may take, at most as long as the setting webhooks.timeout.',
  permanent_statuses: 'Answers that make a job dead at once.',
  breaker_failures_max: 'Failures in a row that open the breaker; 0: never.',
  disable_after: 'The consumer is disabled after this time of nothing but failures; 0s: never.',
}

const ConsumerSettingsView = component(
  'ConsumerSettings',
  Type.Object(
    {
      parallel_max: nullable(Type.Integer(), settingTexts.parallel_max),
      pushes_per_second_max: nullable(Type.Number(), settingTexts.pushes_per_second_max),
      timeout: nullable(durationView('A time.'), settingTexts.timeout),
      permanent_statuses: nullable(Type.Array(Type.Integer()), settingTexts.permanent_statuses),
      breaker_failures_max: nullable(Type.Integer(), settingTexts.breaker_failures_max),
      disable_after: nullable(durationView('A time.'), settingTexts.disable_after),
    },
    { description: 'The settings of this consumer; null: the setting of the server applies.' },
  ),
)

export const ConsumerView = component(
  'WebhookConsumer',
  Type.Object({
    channel_id: Type.String({ description: 'Id of the channel.' }),
    channel_name: Type.String({ description: 'Name of the channel.' }),
    consumer_id: Type.String({ description: 'Id of the consumer.' }),
    consumer_name: Type.String({ description: 'Name of the consumer.' }),
    consumer_type: Type.Enum(['push', 'pull'], { description: 'How the consumer gets its jobs.' }),
    callback_url: Type.String({
      description:
        'Where jobs are pushed to, without a password; only scheme and host without the permission webhook.write or payload.read.',
    }),
    queue: Type.String({ description: 'The queue with the jobs of the consumer.' }),
    dead_queue: Type.String({ description: 'The queue with its dead jobs.' }),
    status: Type.Enum(['active', 'held', 'paused', 'disabled'], {
      description: 'held: the breaker is open. paused: by a person. disabled: it failed for too long.',
    }),
    breaker: BreakerView,
    failing_since: nullableTime(
      'The first failure since the last delivery; null: the last push was delivered.',
    ),
    paused: stopped('Set while a person has paused the consumer.'),
    disabled: stopped('Set while the consumer is disabled.'),
    settings: ConsumerSettingsView,
    counts: Type.Object(
      {
        queued: count('Jobs that wait, also for a retry.'),
        inflight: count('Jobs that are being pushed or that a pull consumer has taken.'),
        delivered: count('Delivered jobs whose message is kept.'),
        dead: count('Dead jobs.'),
      },
      { description: 'Exact counts of the jobs.' },
    ),
    recent: Type.Object(
      {
        minutes: count('How many minutes these figures are of.'),
        delivered: count('Attempts that were delivered.'),
        failed: count('Attempts that failed.'),
        success_ratio: nullable(Type.Number(), 'Delivered attempts of all; null: there were none.'),
        pushes_per_second: Type.Number({ description: 'Attempts per second.' }),
        latency_p50_ms: nullable(Type.Number(), 'Half of the attempts took at most this time.'),
        latency_p95_ms: nullable(Type.Number(), '95 % of the attempts took at most this time.'),
      },
      { description: 'Attempts of the last minutes. They appear after up to 2 seconds.' },
    ),
  }),
)
export type ConsumerView = Static<typeof ConsumerView>

/** `isUrlShown`: the address may contain a secret. */
export function viewConsumer({ counts, stored, figures }: ConsumerReport, isUrlShown: boolean): ConsumerView {
  const { consumer, channelName, queued, inflight, delivered, dead } = counts
  const delivery = stored.delivery ?? newDelivery
  const attempts = figures.delivered + figures.failed
  return {
    channel_id: consumer.channelId,
    channel_name: channelName,
    consumer_id: consumer.id,
    consumer_name: consumer.name,
    consumer_type: consumer.type,
    callback_url: isUrlShown ? maskPassword(consumer.callbackUrl) : redactUrl(consumer.callbackUrl),
    queue: consumer.queue,
    dead_queue: consumer.deadQueue,
    status: readDeliveryStatus(delivery),
    breaker: viewBreaker(delivery.breaker),
    failing_since: formatTimeOrNull(delivery.failingSince),
    paused: viewStop(delivery.paused),
    disabled: viewStop(delivery.disabled),
    settings: viewSettings(delivery.settings),
    counts: { queued, inflight, delivered, dead },
    recent: {
      minutes: figureMinutes,
      delivered: figures.delivered,
      failed: figures.failed,
      success_ratio: attempts === 0 ? null : figures.delivered / attempts,
      pushes_per_second: attempts / (figureMinutes * 60),
      latency_p50_ms: readPercentile(figures.latencies, 0.5),
      latency_p95_ms: readPercentile(figures.latencies, 0.95),
    },
  }
}

type Delivery = NonNullable<ConsumerReport['stored']['delivery']>

function viewBreaker(breaker: Delivery['breaker']): ConsumerView['breaker'] {
  if (breaker.state === 'closed') {
    return { state: 'closed', opened_at: null, probe_at: null, failed_probes: 0, reason: '' }
  }
  return {
    state: breaker.state,
    opened_at: formatInstant(breaker.openedAt),
    probe_at: formatInstant(breaker.state === 'open' ? breaker.holdUntil : breaker.probeUntil),
    failed_probes: breaker.failedProbes,
    reason: breaker.reason,
  }
}

function viewStop(stop: Delivery['paused']): ConsumerView['paused'] {
  return stop === null ? null : { at: formatInstant(stop.at), reason: stop.reason }
}

function viewSettings(settings: Delivery['settings']): ConsumerView['settings'] {
  const duration = (ms: number | null) => (ms === null ? null : formatDuration(ms * usPerMs))
  return {
    parallel_max: settings.parallelMax,
    pushes_per_second_max: settings.pushesPerSecondMax,
    timeout: duration(settings.timeoutMs),
    permanent_statuses: settings.permanentStatuses === null ? null : [...settings.permanentStatuses],
    breaker_failures_max: settings.breakerFailuresMax,
    disable_after: duration(settings.disableAfterMs),
  }
}

function maskPassword(text: string): string {
  const url = URL.parse(text)
  if (url === null || url.password === '') return text
  url.password = '***'
  return url.href
}
