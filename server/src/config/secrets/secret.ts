import { inspect } from 'node:util'

const mask = '[secret]'

/**
 * A value that must not be printed: every conversion to text gives `[secret]`. Only `reveal` returns the
 * value.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return mask
  }

  toJSON(): string {
    return mask
  }

  [inspect.custom](): string {
    return mask
  }
}
