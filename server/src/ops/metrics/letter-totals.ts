import type { EngineEvent } from '../../engine/events.ts'
import { LabelledTotals } from './labelled-totals.ts'

const names = ['captured', 'redriven', 'refused', 'ended', 'discarded', 'archived', 'purged'] as const
/** How many letters this server changed since it started, by queue, refusal or outcome. */
export type LetterTotals = Readonly<Record<(typeof names)[number], LabelledTotals>>

export function createLetterTotals(): LetterTotals {
  return Object.fromEntries(names.map((name) => [name, new LabelledTotals()])) as LetterTotals
}

export function countLetters(totals: LetterTotals, event: EngineEvent): void {
  switch (event.type) {
    case 'letters-captured':
      totals.captured.add(event.queue, event.count)
      break
    case 'letters-redriven':
      totals.redriven.add('', event.count)
      break
    case 'redrives-refused':
      totals.refused.add(event.refusal, event.count)
      break
    case 'redrives-ended':
      totals.ended.add(event.outcome, event.count)
      break
    case 'letters-discarded':
      totals.discarded.add('', event.count)
      break
    case 'letters-archived':
      totals.archived.add(event.queue, event.count)
      break
    case 'letters-purged':
      totals.purged.add(event.queue, event.count)
      break
  }
}
