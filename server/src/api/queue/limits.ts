/** How many items one call may name. */
export type QueueApiLimits = Readonly<{
  produceItemsMax: number
  leaseItemsMax: number
  completeItemsMax: number
}>

export const defaultLimits: QueueApiLimits = {
  produceItemsMax: 1_000,
  leaseItemsMax: 1_000,
  completeItemsMax: 1_000,
}
