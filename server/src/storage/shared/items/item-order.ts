/** The columns by which lists of items are ordered, with the same names in both stores. */
import type { ItemOrder, ItemsQuery } from '../../contract/items.ts'

const columns: Record<ItemOrder, string> = {
  id: 'id',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  deadLetteredAt: 'died_at',
  availableAt: 'available_at',
  priority: 'priority',
}

export function orderColumn({ order = 'id' }: ItemsQuery): string {
  return columns[order]
}

/** Whether the column of the order can be null. The list then has only the items that have a value. */
export function isNullableOrder({ order }: ItemsQuery): boolean {
  return order === 'deadLetteredAt' || order === 'availableAt'
}
