/** Translates the schemas of the routes into the JSON Schema of OpenAPI 3.1, with named components. */
import { readAnnotations } from './annotations.ts'

export type JsonSchema = { [keyword: string]: unknown }
type Given = Readonly<Record<string, unknown>>

const refPrefix = '#/components/schemas/'

export interface SchemaWriter {
  write(schema: object): JsonSchema
  /** Writes a schema as a component, with this name if it has none of its own. */
  writeNamed(schema: object, name: string): JsonSchema
  listComponents(): Record<string, JsonSchema>
}

export function createSchemaWriter(): SchemaWriter {
  const components = new Map<string, JsonSchema>()

  const write = (schema: object): JsonSchema => {
    const { name } = readAnnotations(schema)
    return name === undefined ? writeHere(schema) : createReference(name, schema)
  }

  /** A use with another description has it beside the reference. */
  const createReference = (name: string, schema: object): JsonSchema => {
    const $ref = refPrefix + name
    const { description, ...rest } = writeHere(schema)
    const known = components.get(name)
    if (known === undefined) {
      components.set(name, { ...(description !== undefined && { description }), ...rest })
      return { $ref }
    }
    const { description: knownDescription, ...knownRest } = known
    if (JSON.stringify(rest) !== JSON.stringify(knownRest))
      throw new Error(`two different schemas have the name ${name}`)
    return { $ref, ...(description !== undefined && description !== knownDescription && { description }) }
  }

  const writeHere = (schema: object): JsonSchema => {
    const { name, exactlyOneOf, keywords } = readAnnotations(schema)
    const written: JsonSchema = {}
    for (const [keyword, value] of Object.entries(schema)) writeKeyword(written, keyword, value)
    if (Array.isArray(written.enum) && written.enum.every((each) => typeof each === 'string')) {
      written.type ??= 'string'
    }
    Object.assign(written, keywords)
    return exactlyOneOf === undefined ? written : writeChoices(written, exactlyOneOf, name ?? '')
  }

  const writeKeyword = (written: JsonSchema, keyword: string, value: unknown): void => {
    switch (keyword) {
      case 'properties':
        written.properties = Object.fromEntries(
          Object.entries(value as Given).map(([name, each]) => [name, write(each as object)]),
        )
        return
      case 'items':
        // The form of a tuple in JSON Schema 2020-12.
        if (Array.isArray(value)) Object.assign(written, { prefixItems: value.map(write), items: false })
        else written.items = write(value as object)
        return
      case 'additionalItems':
        return
      case 'anyOf':
        // The alternatives of our schemas exclude each other.
        written.oneOf = (value as object[]).map(write)
        return
      case 'patternProperties':
        written.additionalProperties = write(Object.values(value as Given)[0] as object)
        return
      case 'x-stored-as-bytes':
      case 'x-repaired-when-read':
        return
      default:
        written[keyword] = value
    }
  }

  /** Each alternative is a component too: generated clients need a name for it. */
  const writeChoices = (schema: JsonSchema, choices: readonly string[], name: string): JsonSchema => {
    const { description, ...rest } = schema
    const alternatives = choices.map((choice) => {
      const own = `${name}With${toPascalCase(choice)}`
      components.set(own, splitChoice(rest, choice, choices))
      return { $ref: refPrefix + own }
    })
    return { ...(description !== undefined && { description }), oneOf: alternatives }
  }

  return {
    write,
    writeNamed: (schema, name) => createReference(readAnnotations(schema).name ?? name, schema),
    listComponents: () => Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** The alternative that requires one property and does not have the other choices. */
function splitChoice(schema: JsonSchema, choice: string, choices: readonly string[]): JsonSchema {
  const { properties, required = [], ...rest } = schema
  const own = Object.entries(properties as Given).filter(
    ([name]) => name === choice || !choices.includes(name),
  )
  return { ...rest, required: [...(required as string[]), choice], properties: Object.fromEntries(own) }
}

/** `campaign_id` → `CampaignId` */
function toPascalCase(name: string): string {
  return name.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
}
