import type { QueueName } from '../../core/ids/ids.ts'
import { KnownError } from '../../errors.ts'
import type { SettleRefusal } from '../../storage/contract/items.ts'

/** Names the item that was refused and why, for edges that have their own wording. */
export class ItemRefused extends KnownError {
  readonly itemId: string
  readonly refusal: SettleRefusal['refusal']

  constructor({ id, refusal }: SettleRefusal, message: string) {
    super(refusal === 'missing' ? 'ITEM_NOT_FOUND' : 'ITEM_NOT_LEASED', message)
    this.itemId = id
    this.refusal = refusal
  }
}

/** The error for the first refused item, in the order of the request. The request changed nothing. */
export function createItemRefusedError(
  command: Readonly<{ op: string; queue: QueueName }>,
  refused: readonly SettleRefusal[],
): KnownError {
  const [first = { id: '', refusal: 'missing' as const }] = refused
  const what = first.refusal === 'missing' ? 'is not there' : 'is not leased'
  return new ItemRefused(first, `cannot ${command.op} item ${first.id} of queue ${command.queue}: it ${what}`)
}
