import { join } from 'node:path'
import { deskVariable, openDesk } from './desk.ts'
import { createKeeper } from './keeper.ts'

/** Vitest calls this once before all test files, and what it returns once after them. */
export default async function setUp(): Promise<() => Promise<void>> {
  const keeper = createKeeper(process.env)
  const desk = await openDesk(keeper)
  process.env[deskVariable] = desk.url
  // Hundreds of processes are started and killed: each would compile the same files again.
  process.env.NODE_COMPILE_CACHE ??= join(
    import.meta.dirname,
    '..',
    '..',
    'node_modules',
    '.cache',
    'compiled',
  )
  return async () => {
    await desk.close()
    await keeper.stopAll()
  }
}
