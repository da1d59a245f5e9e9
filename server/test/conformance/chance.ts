/** Chance that can be repeated: a failure names its seed, and REDRIVE_TEST_SEED runs it again. */
import { randomInt } from 'node:crypto'
import { seededRandom } from '../make.ts'

export interface Chance {
  readonly seed: number
  /** In [0, 1). */
  random(): number
  /** A whole number in [0, count). */
  below(count: number): number
  pick<T>(values: readonly T[]): T
}

/** How often to repeat what chance decides; REDRIVE_TEST_SEEDS asks for more, or for less. */
export function repeats(usual: number): number {
  const asked = process.env.REDRIVE_TEST_SEEDS
  return asked === undefined ? usual : Number(asked)
}

export function newSeed(): number {
  const asked = process.env.REDRIVE_TEST_SEED
  return asked === undefined ? randomInt(2 ** 31) : Number(asked)
}

export function chanceOf(seed: number): Chance {
  const random = seededRandom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  return { seed, random, below, pick: (values) => values[below(values.length)] as (typeof values)[number] }
}

/** Runs a test by chance; what it throws begins with the seed. */
export async function byChance(test: (chance: Chance) => Promise<void>): Promise<void> {
  const seed = newSeed()
  try {
    await test(chanceOf(seed))
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    throw new Error(`with REDRIVE_TEST_SEED=${seed}: ${said}`, { cause: error })
  }
}
