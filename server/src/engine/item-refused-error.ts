import { KnownError } from '../errors.ts'
import type { SettleRefusal } from '../storage/contract/items.ts'

/** Which id was refused and why, for edges that render it in their own words. */
export class ItemRefused extends KnownError {
  readonly itemId: string
  readonly why: SettleRefusal['why']

  constructor({ id, why }: SettleRefusal, message: string) {
    super(why === 'missing' ? 'ITEM_NOT_FOUND' : 'ITEM_NOT_LEASED', message)
    this.itemId = id
    this.why = why
  }
}

/** The first refusal in the order asked: the call changed nothing. */
export function itemRefused(
  command: Readonly<{ op: string; queue: string }>,
  refused: readonly SettleRefusal[],
): KnownError {
  const [first = { id: '', why: 'missing' as const }] = refused
  const what = first.why === 'missing' ? 'is not there' : 'is not leased'
  return new ItemRefused(first, `cannot ${command.op} item ${first.id} of queue ${command.queue}: it ${what}`)
}
