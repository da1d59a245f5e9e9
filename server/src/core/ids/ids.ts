/**
 * The ids and names of different things have different types, so that an id of one thing is not passed as the
 * id of another. A plain string is accepted as any of them, because ids arrive as text: from a row, a
 * request, a message or a test. The brand exists only for the compiler and costs nothing at run time.
 */
import { findKsuidProblem } from './ksuid.ts'

declare const brand: unique symbol
type Branded<T, Name extends string> = T & { readonly [brand]?: Name }

/** The present id of an item. It changes when the item goes to the tail of its partition. */
export type ItemId = Branded<string, 'ItemId'>
/** The id that an item was accepted with. It never changes, so a letter is identified by it. */
export type LetterId = Branded<string, 'LetterId'>
export type CampaignId = Branded<string, 'CampaignId'>
export type QueueName = Branded<string, 'QueueName'>
/** The number of a group of letters. */
export type GroupId = Branded<number, 'GroupId'>

/** The root id of an item that is accepted with this id. */
export function toRootId(id: ItemId): LetterId {
  return id as string
}

/**
 * Undefined: the text is no id. An invalid id could map to the UUID of another letter, so reject it first.
 */
export function parseLetterId(text: string): LetterId | undefined {
  return findKsuidProblem(text) === undefined ? text : undefined
}
