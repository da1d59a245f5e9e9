/** The settings of a consumer in requests. */
import { type Static, Type } from 'typebox'
import { usPerMs } from '../../../core/time/instant.ts'
import type { DeliverySettings } from '../../../core/webhook/delivery/consumer-delivery.ts'
import { duration, parseDurationField } from '../values/duration.ts'
import { nullable } from '../values/schemas.ts'
import { settingTexts } from './consumer-view.ts'

const unset = 'null: the setting of the server.'

export const ConsumerSettingsSpec = Type.Object(
  {
    parallel_max: Type.Optional(
      nullable(Type.Integer({ minimum: 1, maximum: 10_000 }), `${settingTexts.parallel_max} ${unset}`),
    ),
    pushes_per_second_max: Type.Optional(
      nullable(
        Type.Number({ minimum: 0.01, maximum: 100_000 }),
        `${settingTexts.pushes_per_second_max} ${unset}`,
      ),
    ),
    timeout: Type.Optional(nullable(duration('A time.'), `${settingTexts.timeout} ${unset}`)),
    permanent_statuses: Type.Optional(
      nullable(
        Type.Array(Type.Integer({ minimum: 300, maximum: 599 }), { maxItems: 100 }),
        `${settingTexts.permanent_statuses} ${unset}`,
      ),
    ),
    breaker_failures_max: Type.Optional(
      nullable(
        Type.Integer({ minimum: 0, maximum: 1_000_000 }),
        `${settingTexts.breaker_failures_max} ${unset}`,
      ),
    ),
    disable_after: Type.Optional(nullable(duration('A time.'), `${settingTexts.disable_after} ${unset}`)),
  },
  { additionalProperties: false, description: 'The settings to change. Others stay.' },
)

export function readConsumerSettings(spec: Static<typeof ConsumerSettingsSpec>): Partial<DeliverySettings> {
  const time = (field: string, text: string | null, msMin: number): number | null =>
    text === null
      ? null
      : Math.ceil(parseDurationField(`body.settings.${field}`, text, msMin * usPerMs) / usPerMs)
  return {
    ...(spec.parallel_max !== undefined && { parallelMax: spec.parallel_max }),
    ...(spec.pushes_per_second_max !== undefined && { pushesPerSecondMax: spec.pushes_per_second_max }),
    ...(spec.timeout !== undefined && { timeoutMs: time('timeout', spec.timeout, 1) }),
    ...(spec.permanent_statuses !== undefined && { permanentStatuses: spec.permanent_statuses }),
    ...(spec.breaker_failures_max !== undefined && { breakerFailuresMax: spec.breaker_failures_max }),
    ...(spec.disable_after !== undefined && { disableAfterMs: time('disable_after', spec.disable_after, 0) }),
  }
}
