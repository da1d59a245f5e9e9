import type { ListedState } from '../../../storage/contract/items.ts'

/** Those that wait for somebody: PENDING and DEAD. */
export const openStates: readonly ListedState[] = ['waiting', 'scheduled', 'dead']
