/** Schemas that several routes share. */
import { type TSchema, Type } from 'typebox'
import type { Instant } from '../../../core/time/instant.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'

/** `time('When …')`: an RFC 3339 time with its meaning. */
export function time(description: string) {
  return Type.String({ format: 'date-time', description })
}

export function nullable<S extends TSchema>(schema: S, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}

export function nullableTime(description: string) {
  return nullable(Type.String({ format: 'date-time' }), description)
}

export function formatTimeOrNull(instant: Instant | null | undefined): string | null {
  return instant === null || instant === undefined ? null : formatInstant(instant)
}

export function queueName(description: string) {
  return Type.String({ minLength: 1, maxLength: 512, description })
}

/** The parameter of all paths of a queue. */
export const QueueParams = Type.Object({
  name: queueName('Name of the queue. Write ~ before a name that a URL cannot contain, such as `..`.'),
})

/** A guard of calls that change many letters. */
export const ExpectedCount = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: 1_000_000_000,
    description:
      'The number of letters that you expect to select, after limit is applied. Refused with 409 ' +
      'SELECTION_CHANGED, and nothing is changed, if the selection has another number.',
  }),
)

export const LetterId = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Id of a letter: 27 characters, or its UUID in the dlq API.',
})
