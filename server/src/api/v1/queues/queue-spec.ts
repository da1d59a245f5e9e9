/** The policy of a queue in requests. */
import { type Static, Type } from 'typebox'
import type { PolicyChanges } from '../../../core/items/queue.ts'
import type { RetryPolicy } from '../../../core/items/retry.ts'
import { KnownError } from '../../../errors.ts'
import { component } from '../../http/openapi/annotations.ts'
import { duration, parseDurationField } from '../values/duration.ts'

/** Descriptions that requests and answers share. */
export const policyTexts = {
  lease_timeout: 'How long a lease lasts.',
  expire_timeout: 'How long an item may wait before it dies.',
  attempts_max:
    'How many attempts an item has; 0: no limit. An item dies if its lease ends and its attempts have reached ' +
    'the limit, or if it is retried and its attempts exceed the limit.',
  dead_queue: 'The queue that receives items that die; null: none.',
  on_dead: 'Without a dead queue: whether an item that dies is deleted, or kept in the queue as dead.',
  retry: 'How long an item waits after a failed attempt.',
  delays: 'fixed: one delay; list: one delay per attempt; exponential: the first and the longest delay.',
  jitter: '0.2 changes each delay randomly by up to 20 % in both directions.',
  done_retention: 'How long completed items are kept.',
  letter_class:
    'For a dead queue: the class of its letters, such as standard or financial. It controls alerts and retention.',
  redrive: 'For a dead queue: whether its letters are redriven automatically, and how often.',
  redrives_max: 'A letter that fails again after this number of redrives is DEAD.',
  backoff: 'How long a letter waits before its next automatic redrive.',
  reference: 'A text of your choice.',
} as const

const retrySpec = (description: string) =>
  component(
    'RetrySpec',
    Type.Object(
      {
        kind: Type.Enum(['fixed', 'list', 'exponential'], { description: 'How the delays grow.' }),
        delays: Type.Array(duration('A delay.'), {
          minItems: 1,
          maxItems: 100,
          description: policyTexts.delays,
        }),
        jitter: Type.Optional(
          Type.Number({ minimum: 0, maximum: 1, description: `${policyTexts.jitter} Default 0.` }),
        ),
      },
      { additionalProperties: false, description },
    ),
  )
type RetrySpec = Static<ReturnType<typeof retrySpec>>

const RedriveSpec = component(
  'RedrivePolicySpec',
  Type.Object(
    {
      mode: Type.Optional(
        Type.Enum(['manual', 'auto'], { description: 'auto: letters are redriven automatically.' }),
      ),
      redrives_max: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 1_000, description: policyTexts.redrives_max }),
      ),
      backoff: Type.Optional(retrySpec(policyTexts.backoff)),
    },
    {
      additionalProperties: false,
      description: `${policyTexts.redrive} Omitted fields have their default; an update leaves them unchanged.`,
    },
  ),
)

/** All fields are optional. */
export const PolicySpec = component(
  'QueuePolicySpec',
  Type.Object(
    {
      lease_timeout: Type.Optional(duration(policyTexts.lease_timeout)),
      expire_timeout: Type.Optional(duration(policyTexts.expire_timeout)),
      attempts_max: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 65_536, description: policyTexts.attempts_max }),
      ),
      dead_queue: Type.Optional(
        Type.Union([Type.String({ minLength: 1, maxLength: 500 }), Type.Null()], {
          description: policyTexts.dead_queue,
        }),
      ),
      on_dead: Type.Optional(Type.Enum(['delete', 'keep'], { description: policyTexts.on_dead })),
      retry: Type.Optional(retrySpec(policyTexts.retry)),
      done_retention: Type.Optional(duration(policyTexts.done_retention)),
      letter_class: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 100,
          pattern: '^[A-Za-z0-9_.-]+$',
          description: policyTexts.letter_class,
        }),
      ),
      redrive: Type.Optional(RedriveSpec),
      reference: Type.Optional(Type.String({ maxLength: 2_000, description: policyTexts.reference })),
    },
    { additionalProperties: false, description: 'The rules of the queue.' },
  ),
)

export function readPolicy(spec: Static<typeof PolicySpec>): PolicyChanges {
  return {
    ...(spec.lease_timeout !== undefined && {
      leaseTimeoutUs: parseDurationField('policy.lease_timeout', spec.lease_timeout, 1),
    }),
    ...(spec.expire_timeout !== undefined && {
      expireTimeoutUs: parseDurationField('policy.expire_timeout', spec.expire_timeout, 1),
    }),
    ...(spec.attempts_max !== undefined && { attemptsMax: spec.attempts_max }),
    ...(spec.dead_queue !== undefined && { deadQueue: spec.dead_queue }),
    ...(spec.on_dead !== undefined && { onDead: spec.on_dead }),
    ...(spec.retry !== undefined && { retry: readRetry('policy.retry', spec.retry) }),
    ...(spec.done_retention !== undefined && {
      doneRetentionUs: parseDurationField('policy.done_retention', spec.done_retention, 0),
    }),
    ...(spec.letter_class !== undefined && { letterClass: spec.letter_class }),
    ...(spec.redrive !== undefined && { redrive: readRedrive(spec.redrive) }),
    ...(spec.reference !== undefined && { reference: spec.reference }),
  }
}

function readRedrive(spec: Static<typeof RedriveSpec>): NonNullable<PolicyChanges['redrive']> {
  return {
    ...(spec.mode !== undefined && { mode: spec.mode }),
    ...(spec.redrives_max !== undefined && { redrivesMax: spec.redrives_max }),
    ...(spec.backoff !== undefined && { backoff: readRetry('policy.redrive.backoff', spec.backoff) }),
  }
}

function readRetry(field: string, { kind, delays, jitter = 0 }: RetrySpec): RetryPolicy {
  const delaysUs = delays.map((delay) => parseDurationField(`${field}.delays`, delay, 0))
  const [first = 0, longest = first] = delaysUs
  const countMax = { fixed: 1, list: 100, exponential: 2 }[kind]
  if (delaysUs.length > countMax) {
    const message = `${field}.delays: has ${delaysUs.length} delays; ${kind} allows at most ${countMax}`
    throw new KnownError('BAD_REQUEST', message)
  }
  switch (kind) {
    case 'fixed':
      return { kind, delayUs: first, jitter }
    case 'list':
      return { kind, delaysUs, jitter }
    case 'exponential':
      return { kind, delayUsMin: first, delayUsMax: longest, jitter }
  }
}
