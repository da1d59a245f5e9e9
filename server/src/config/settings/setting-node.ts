/** A value of a structured setting, with its path for error messages. */
import { KnownError } from '../../errors.ts'

export class SettingNode {
  readonly path: string
  readonly #value: unknown

  constructor(value: unknown, path: string) {
    this.#value = value
    this.path = path
  }

  /** From a setting that has the structure as JSON. `what`: for the error message. */
  static parse(text: string, path: string, what: string): SettingNode {
    try {
      return new SettingNode(JSON.parse(text), path)
    } catch (error) {
      throw refuseSetting(`${path} is not ${what} in YAML or JSON`, error)
    }
  }

  get isMissing(): boolean {
    return this.#value === undefined || this.#value === null
  }

  isText(text: string): boolean {
    return String(this.#value) === text
  }

  at(name: string): SettingNode {
    const map = this.#value as Readonly<Record<string, unknown>> | undefined
    const isOwn = typeof map === 'object' && map !== null && Object.hasOwn(map, name)
    return new SettingNode(isOwn ? map[name] : undefined, `${this.path}.${name}`)
  }

  entries(): readonly (readonly [string, SettingNode])[] {
    if (this.isMissing) return []
    if (typeof this.#value !== 'object' || Array.isArray(this.#value))
      throw refuseSetting(`${this.path} must be a map`)
    return Object.keys(this.#value as object).map((name) => [name, this.at(name)])
  }

  /** The entries of a list of maps. */
  items(): readonly SettingNode[] {
    if (this.isMissing) return []
    if (!Array.isArray(this.#value)) throw refuseSetting(`${this.path} must be a list`)
    return this.#value.map((value, index) => new SettingNode(value, `${this.path}[${index}]`))
  }

  /** The values of a map as they are given. */
  fields(): Readonly<Record<string, unknown>> {
    this.entries()
    return (this.#value ?? {}) as Readonly<Record<string, unknown>>
  }

  only(names: readonly string[]): void {
    const unknown = this.entries().find(([name]) => !names.includes(name))
    if (unknown !== undefined)
      throw refuseSetting(`${unknown[1].path} is unknown; known are ${names.join(', ')}`)
  }

  text(): string | undefined {
    if (this.isMissing) return undefined
    if (typeof this.#value === 'object' || String(this.#value).trim() === '')
      throw refuseSetting(`${this.path} must be a text that is not empty`)
    return String(this.#value)
  }

  required(): string {
    const text = this.text()
    if (text === undefined) throw refuseSetting(`${this.path} is missing`)
    return text
  }

  boolean(): boolean | undefined {
    const text = this.text()
    if (text === undefined) return undefined
    if (text === 'true' || text === 'false') return text === 'true'
    throw refuseSetting(`${this.path} must be true or false`)
  }

  /** A list, or texts separated by commas. */
  list(): readonly string[] {
    if (this.isMissing) return []
    const entries = Array.isArray(this.#value) ? this.#value.map(String) : String(this.#value).split(',')
    return entries.map((entry) => entry.trim()).filter((entry) => entry !== '')
  }
}

export function refuseSetting(message: string, cause?: unknown): KnownError {
  return new KnownError('SETTING_INVALID', message, cause)
}
