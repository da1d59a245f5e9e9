/**
 * Routes for external test suites in any language. The route table has them only if the server was started
 * with `--test-hooks`, which is refused unless it listens on loopback.
 */
import { Type } from 'typebox'
import { parseDuration } from '../../core/time/duration.ts'
import { KnownError } from '../../errors.ts'
import { type Route, route } from '../http/route.ts'
import { formatInstant, parseInstant } from '../http/wire/wire-time.ts'
import { v1 } from '../v1/dialect.ts'

export type TestHooks = Readonly<{
  freeze(at: number): void
  advance(byUs: number): void
  resume(): void
  now(): number
  /** Resolves when all due work on dead letters is done. */
  advanceLetters(): Promise<void>
}>

export function createTestHookRoutes(hooks: TestHooks): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/_test/clock',
      operationId: 'setTestClock',
      permission: 'public',
      summary:
        'Freezes, advances or resumes the clock of the server. All work that is due by then is done when it answers.',
      tag: 'test-hooks',
      dialect: v1,
      schema: {
        body: Type.Object(
          {
            now: Type.Optional(
              Type.String({
                maxLength: 64,
                description: 'Freezes the clock at this RFC 3339 time.',
                examples: ['2026-01-02T03:04:05.000006Z'],
              }),
            ),
            advance: Type.Optional(
              Type.String({
                maxLength: 64,
                description: 'Advances the clock by this duration.',
                examples: ['1m'],
              }),
            ),
            resume: Type.Optional(Type.Boolean({ description: 'true: the clock runs again.' })),
          },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ now: Type.String({ description: 'The time of the clock.' }) }) },
      },
      handler: async ({ body }, _reply, context) => {
        const given = Object.keys(body)
        if (given.length !== 1 || body.resume === false) {
          throw new KnownError('BAD_REQUEST', 'give exactly one of now, advance and resume: true')
        }
        if (body.now !== undefined) hooks.freeze(parseNow(body.now))
        else if (body.advance !== undefined) hooks.advance(parseAdvance(body.advance))
        else hooks.resume()
        await context.engine().advance()
        await hooks.advanceLetters()
        return { now: formatInstant(hooks.now()) }
      },
    }),
    route({
      method: 'POST',
      path: '/_test/hold',
      operationId: 'holdQueue',
      errors: ['QUEUE_NOT_FOUND'],
      permission: 'public',
      summary:
        'Holds or releases a queue. A held queue accepts requests and counts them as waiting, but executes none.',
      tag: 'test-hooks',
      dialect: v1,
      schema: {
        body: Type.Object(
          {
            queue_name: Type.String({ minLength: 1, maxLength: 512, description: 'Name of the queue.' }),
            hold: Type.Boolean({ description: 'true: hold; false: release.' }),
          },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ queue_name: Type.String(), hold: Type.Boolean() }) },
      },
      handler: async ({ body: { queue_name, hold } }, _reply, context) => {
        const engine = context.engine()
        // Loads the queue, so that it is held from now on and not only from its first request.
        await engine.readStats(queue_name)
        engine.hold(queue_name, hold)
        return { queue_name, hold }
      },
    }),
  ]
}

function parseNow(text: string): number {
  const instant = parseInstant(text)
  if (instant === undefined)
    throw new KnownError('BAD_REQUEST', `now: ${JSON.stringify(text)} is not an RFC 3339 time`)
  return instant
}

function parseAdvance(text: string): number {
  try {
    const durationUs = parseDuration(text)
    if (durationUs >= 0) return durationUs
  } catch (error) {
    throw new KnownError(
      'BAD_REQUEST',
      `advance: ${error instanceof Error ? error.message : String(error)}`,
      error,
    )
  }
  throw new KnownError('BAD_REQUEST', 'advance: is negative; use now to set an earlier time')
}
