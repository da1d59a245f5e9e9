import type { ImportResult, ItemChange, ItemToImport } from '../storage/contract/items.ts'
import type { RedriveEnded } from '../storage/contract/letters.ts'
import type { Command, Storage } from '../storage/contract/storage.ts'
import { LabelledTotals } from './labelled-totals.ts'

const names = ['captured', 'redriven', 'refused', 'ended', 'discarded', 'archived', 'purged'] as const
/** What this server did with letters since it started, by queue or by why. */
export type LetterTotals = Readonly<Record<(typeof names)[number], LabelledTotals>>

export function createLetterTotals(): LetterTotals {
  return Object.fromEntries(names.map((name) => [name, new LabelledTotals()])) as LetterTotals
}

/**
 * The store, counting what is written about letters: calls of people, workers, campaigns and policies all pass
 * here. What was not committed is not counted.
 */
export function meterLetters(storage: Storage, totals: LetterTotals): Storage {
  const write: Storage['write'] = async (commands) => {
    const results = await storage.write(commands)
    for (const [index, command] of commands.entries()) {
      count(command, (results as readonly unknown[])[index], totals)
    }
    return results
  }
  return new Proxy(storage, {
    get: (store, name) => {
      if (name === 'write') return write
      const part: unknown = Reflect.get(store, name, store)
      // A store may be a class with private fields: its methods want to be called on it.
      return typeof part === 'function' ? part.bind(store) : part
    },
  })
}

function count(command: Command, result: unknown, totals: LetterTotals): void {
  switch (command.op) {
    case 'import': {
      const imported = result as readonly ImportResult[]
      const isCaptured = (item: ItemToImport, at: number) => item.origin != null && imported[at]?.id != null
      totals.captured.add(command.queue, command.items.filter(isCaptured).length)
      return
    }
    case 'redrive':
      for (const redriven of result as readonly ({ isStarted: true } | { isStarted: false; why: string })[]) {
        if (redriven.isStarted) totals.redriven.add('', 1)
        else totals.refused.add(redriven.why, 1)
      }
      return
    case 'discard':
      for (const { isDiscarded } of result as readonly { isDiscarded: boolean }[]) {
        totals.discarded.add('', isDiscarded ? 1 : 0)
      }
      return
    case 'archive':
      totals.archived.add(command.queue, (result as { archived: number }).archived)
      return
    case 'complete':
    case 'retry':
    case 'advance':
      for (const { outcome } of (result as Readonly<{ changes?: readonly ItemChange[] }>).changes ?? []) {
        if (outcome !== undefined) totals.ended.add(outcome, 1)
      }
      return
    case 'end-redrives':
      for (const [at, { state }] of (result as readonly RedriveEnded[]).entries()) {
        if (state !== null) totals.ended.add(command.ends[at]?.outcome ?? 'unknown', 1)
      }
      return
    case 'purge-archive':
      totals.purged.add(command.queue, (result as { purged: number }).purged)
      return
  }
}
