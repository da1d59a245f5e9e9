/** Prunes messages of a store, and kills itself at a given point of a given step. */
import { createMessageArchive } from '../../../src/drivers/webhook/pruning/message-archive.ts'
import { createMessagePruner } from '../../../src/drivers/webhook/pruning/message-pruner.ts'
import { createEngine } from '../../../src/engine/create-engine.ts'
import { openStorage, type StoreTarget } from '../../../src/storage/open-storage.ts'

export type PruneTask = Readonly<{
  store: StoreTarget
  folder: string
  owner: string
  now: number
  kill: Readonly<{ at: 'before-lines' | 'after-lines' | 'after-rows'; step: number }>
}>

const { store, folder, owner, now, kill } = JSON.parse(process.argv[2] ?? '') as PruneTask
const clock = { now: () => now }
const storage = await openStorage(store, { clock })
const engine = createEngine(storage, { clock, isTicking: false })
const archive = createMessageArchive({ folder, nodeName: 'node', fileBytesMax: 20_000, clock })
let steps = 0
const die = (at: PruneTask['kill']['at']): void => {
  if (at === kill.at && steps === kill.step) process.kill(process.pid, 'SIGKILL')
}
const pruner = createMessagePruner({
  storage: () => storage,
  engine: () => ({
    write: async (commands) => {
      const results = await engine.write(commands)
      if (commands.some(({ op }) => op === 'prune-messages')) die('after-rows')
      return results
    },
  }),
  clock,
  archive: {
    ...archive,
    append: async (lines) => {
      steps += 1
      die('before-lines')
      await archive.append(lines)
      die('after-lines')
    },
  },
  retentionUs: 0,
  owner,
})
await pruner.pass()
await pruner.close()
await engine.close()
await storage.close()
