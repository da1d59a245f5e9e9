import type { Static, TSchema } from 'typebox'
import type { Instant } from '../../../core/time/instant.ts'
import { compileCheck } from '../validation/validate.ts'
import { decodeJson, parseJson } from '../wire/parse-json.ts'

/** The facts that a reader needs in addition to the body. They are sent to the thread. */
export type BodyFacts = Readonly<{ now: Instant }>

/**
 * Reads a body into the value that the handler of a route uses. The same reader reads a small body on the
 * server's thread and a large body on the body thread (api/body-thread/). Its result is a tree of plain
 * values and byte arrays whose number of values is limited, because the server's thread has to receive it.
 */
export type BodyReader<T = unknown> = Readonly<{
  /** The name in the list of readers of the body thread. */
  name: string
  read(bytes: Buffer, facts: BodyFacts): T
}>

/** A JSON body that was checked, and the text that it was parsed from. */
export type CheckedBody<S extends TSchema> = Readonly<{ body: Static<S>; text: string }>

/** Creates a reader of a JSON body that has a schema. */
export function createBodyReader<S extends TSchema, T>(
  name: string,
  schema: S,
  convert: (checked: CheckedBody<S>, facts: BodyFacts) => T,
): BodyReader<T> {
  let check: ReturnType<typeof compileCheck> | undefined
  return {
    name,
    read: (bytes, facts) => {
      check ??= compileCheck(schema, 'body')
      const text = decodeJson(bytes)
      // Without a body there is nothing to parse. The schema decides whether a body is required.
      const checked = check(text === '' ? undefined : parseJson(text))
      if ('error' in checked) throw checked.error
      return convert({ body: checked.value as Static<S>, text }, facts)
    },
  }
}

/** The body of a request, as the reader of its route has read it. */
export function takeBody<T>(request: Readonly<{ body: unknown }>, _reader: BodyReader<T>): T {
  return request.body as T
}
