import type { QueueName } from '../core/ids.ts'
import { KnownError } from '../errors.ts'
import type { SettleRefusal } from '../storage/contract/items.ts'

/** Names the item that was refused and why, for edges that have their own wording. */
export class ItemRefused extends KnownError {
  readonly itemId: string
  readonly why: SettleRefusal['why']

  constructor({ id, why }: SettleRefusal, message: string) {
    super(why === 'missing' ? 'ITEM_NOT_FOUND' : 'ITEM_NOT_LEASED', message)
    this.itemId = id
    this.why = why
  }
}

/** The error for the first refused item, in the order of the request. The request changed nothing. */
export function itemRefused(
  command: Readonly<{ op: string; queue: QueueName }>,
  refused: readonly SettleRefusal[],
): KnownError {
  const [first = { id: '', why: 'missing' as const }] = refused
  const what = first.why === 'missing' ? 'is not there' : 'is not leased'
  return new ItemRefused(first, `cannot ${command.op} item ${first.id} of queue ${command.queue}: it ${what}`)
}
