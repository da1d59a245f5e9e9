/**
 * Seeds of random tests. `npm test` uses fixed seeds, so that two runs of one commit do the same.
 * `npm run test:random` sets REDRIVE_TEST_SEED=random and gets fresh seeds. REDRIVE_TEST_SEED=<number>
 * repeats a run; a failure prints the command that does so.
 */
import { randomInt } from 'node:crypto'
import { expect } from 'vitest'
import { createSeededRandom, type SeededRandom } from './seeded-random.ts'

const fixedSeed = 20_261_115
const seedMax = 2 ** 31

/** The seed of the first run of each test in this file; the others count up from it. */
const firstSeed = readFirstSeed(process.env.REDRIVE_TEST_SEED)

function readFirstSeed(setting: string | undefined): number {
  if (setting === undefined) return fixedSeed
  if (setting === 'random') return randomInt(seedMax)
  const seed = Number(setting)
  if (!Number.isSafeInteger(seed)) {
    throw new Error(`REDRIVE_TEST_SEED is ${JSON.stringify(setting)}; it must be an integer or "random"`)
  }
  return seed
}

export function testSeed(run = 0): number {
  return (firstSeed + run) % seedMax
}

/** How often to repeat a random test: REDRIVE_TEST_SEEDS, or else `usual`. */
export function repeats(usual: number): number {
  const setting = process.env.REDRIVE_TEST_SEEDS
  return setting === undefined ? usual : Number(setting)
}

/** Runs a test with the random numbers of run `run`. Its error names the seed and how to reproduce it. */
export async function withRandom<T>(test: (random: SeededRandom) => Promise<T>, run = 0): Promise<T> {
  const seed = testSeed(run)
  try {
    return await test(createSeededRandom(seed))
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`with seed ${seed}: ${message}\n${reproduceHint(seed)}`, { cause: error })
  }
}

/** The command that runs the current test again with this seed. */
export function reproduceHint(seed: number): string {
  const { testPath = '', currentTestName = '' } = expect.getState()
  const seeds = process.env.REDRIVE_TEST_SEEDS
  const variables = `REDRIVE_TEST_SEED=${seed}${seeds === undefined ? '' : ` REDRIVE_TEST_SEEDS=${seeds}`}`
  const path = testPath.replace(`${process.cwd()}/`, '')
  // Vitest matches a name as a regular expression, without the `>` between its parts.
  const pattern = currentTestName.replaceAll(' > ', ' ').replace(/[\\^$.*+?()[\]{}|]/g, '.')
  return `To reproduce: ${variables} npx vitest run ${path} -t '${pattern.replaceAll("'", '.')}'`
}
