import { type Static, Type } from 'typebox'
import { parseDuration } from '../../../core/duration.ts'
import type { PolicyChanges } from '../../../core/queue.ts'
import type { RetryPolicy } from '../../../core/retry.ts'
import { KnownError } from '../../../errors.ts'

const Duration = Type.String({ maxLength: 32, description: 'Such as 300ms, 90s or 24h.', examples: ['1m'] })

export const attemptsMaxMeans =
  '0: no bound. Reached, a lease that ends by itself kills the item; exceeded, a retry does.'

const RetrySpec = Type.Object(
  {
    kind: Type.Enum(['fixed', 'list', 'exponential']),
    delays: Type.Array(Duration, {
      minItems: 1,
      maxItems: 100,
      description: 'fixed: the one delay; list: one per attempt; exponential: the first and the longest.',
    }),
    jitter: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  },
  { additionalProperties: false },
)

/** What a person may set on a queue; all of it can be left out. */
export const PolicySpec = Type.Object(
  {
    lease: Type.Optional(Duration),
    expire: Type.Optional(Duration),
    attempts_max: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_536, description: attemptsMaxMeans })),
    dead_queue: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 500 }), Type.Null()])),
    on_dead: Type.Optional(Type.Enum(['delete', 'keep'])),
    retry: Type.Optional(RetrySpec),
    keep_done: Type.Optional(Duration),
    letter_class: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        pattern: '^[A-Za-z0-9_.-]+$',
        description:
          'Of a dead queue: how alerts and retention treat its letters, such as standard or financial.',
      }),
    ),
    redrive: Type.Optional(
      Type.Object(
        {
          mode: Type.Optional(Type.Enum(['manual', 'auto'])),
          redrives_max: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: 1_000,
              description: 'Reached, a letter that fails again is DEAD.',
            }),
          ),
          backoff: Type.Optional(RetrySpec),
        },
        {
          additionalProperties: false,
          description:
            'Of a dead queue: whether its letters go back by themselves, and how often at most. What is left out has its default, and stays as it is when a queue is changed.',
        },
      ),
    ),
    reference: Type.Optional(Type.String({ maxLength: 2_000 })),
  },
  { additionalProperties: false },
)

export function policyOf(spec: Static<typeof PolicySpec>): PolicyChanges {
  const policy: PolicyChanges = {
    ...(spec.lease !== undefined && { leaseUs: durationOf('lease', spec.lease, 1) }),
    ...(spec.expire !== undefined && { expireUs: durationOf('expire', spec.expire, 1) }),
    ...(spec.attempts_max !== undefined && { attemptsMax: spec.attempts_max }),
    ...(spec.dead_queue !== undefined && { deadQueue: spec.dead_queue }),
    ...(spec.on_dead !== undefined && { onDead: spec.on_dead }),
    ...(spec.retry !== undefined && { retry: retryOf(spec.retry) }),
    ...(spec.keep_done !== undefined && { keepDoneUs: durationOf('keep_done', spec.keep_done, 0) }),
    ...(spec.letter_class !== undefined && { letterClass: spec.letter_class }),
    ...(spec.redrive !== undefined && {
      redrive: {
        ...(spec.redrive.mode !== undefined && { mode: spec.redrive.mode }),
        ...(spec.redrive.redrives_max !== undefined && { redrivesMax: spec.redrive.redrives_max }),
        ...(spec.redrive.backoff !== undefined && {
          backoff: retryOf(spec.redrive.backoff, 'redrive.backoff'),
        }),
      },
    }),
    ...(spec.reference !== undefined && { reference: spec.reference }),
  }
  return policy
}

export function durationOf(field: string, text: string, usMin: number): number {
  try {
    const durationUs = parseDuration(text)
    if (durationUs >= usMin) return durationUs
  } catch (error) {
    throw new KnownError('BAD_REQUEST', `${field}: ${error instanceof Error ? error.message : error}`, error)
  }
  throw new KnownError('BAD_REQUEST', `${field}: ${text} is too short`)
}

function retryOf({ kind, delays, jitter = 0 }: Static<typeof RetrySpec>, field = 'retry'): RetryPolicy {
  const delaysUs = delays.map((delay) => durationOf(`${field}.delays`, delay, 0))
  const [first = 0, longest = first] = delaysUs
  const countMax = { fixed: 1, list: 100, exponential: 2 }[kind]
  if (delaysUs.length > countMax) {
    throw new KnownError(
      'BAD_REQUEST',
      `${field}.delays: ${kind} takes at most ${countMax}, not ${delaysUs.length}`,
    )
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
