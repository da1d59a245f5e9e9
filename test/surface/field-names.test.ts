import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { v1Routes } from '../../server/src/api/v1/routes.ts'
import { settingsTable } from '../../server/src/config/settings/settings.ts'

type Schema = Readonly<{
  properties?: Readonly<Record<string, Schema>>
  items?: Schema
  anyOf?: readonly Schema[]
}>

/** The names of all fields of a schema, at any depth. */
function listNames({ properties = {}, items, anyOf = [] }: Schema): string[] {
  const nested = [...Object.values(properties), ...(items === undefined ? [] : [items]), ...anyOf]
  return [...Object.keys(properties), ...nested.flatMap(listNames)]
}

/** The names of all fields and parameters of `/api/v1`. */
function listFieldNames(): string[] {
  const schemas = v1Routes.flatMap(({ schema }) => [
    schema.body,
    schema.querystring,
    (schema.response as Readonly<Record<number, unknown>>)[200],
  ])
  const names = schemas
    .filter((schema) => schema !== undefined)
    .flatMap((schema) => listNames(schema as Schema))
  return [...new Set(names)].toSorted()
}

/** All words in code marks of docs/concepts.md: `origin.name` lists `origin` and `name`. */
function readListedNames(): ReadonlySet<string> {
  const page = readFileSync(new URL('../../docs/concepts.md', import.meta.url), 'utf8')
  return new Set([...page.matchAll(/`([^`]+)`/g)].flatMap(([, text = '']) => text.split(/[.=]/)))
}

describe('the names of fields', () => {
  it('docs/concepts.md lists every field of /api/v1', () => {
    const listed = readListedNames()
    expect(listFieldNames().filter((name) => !listed.has(name))).toEqual([])
  })

  it('every field of /api/v1 and every setting is in snake_case', () => {
    const isStatus = (name: string) => /^[A-Z]+$/.test(name)
    const names = [...listFieldNames(), ...Object.keys(settingsTable)]
    expect(names.filter((name) => !isStatus(name) && !/^[a-z][a-z0-9_.]*$/.test(name))).toEqual([])
  })
})
