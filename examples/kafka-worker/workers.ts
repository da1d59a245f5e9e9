/** The workers of the system: topics, retries and dead-letter topics. One process runs one of them. */

export type WorkerSpec = Readonly<{
  topic: string
  /** The delay before each retry. */
  retry: readonly string[]
  /** Keep the records of a deal in order after one of them is dead. */
  holdKeys?: boolean
}>

const slow = ['1s', '5s', '30s', '5m', '30m'] as const

export const workers: Readonly<Record<string, WorkerSpec>> = {
  'deposit-watcher': { topic: 'escrow.commands', retry: slow, holdKeys: true },
  'payout-executor': { topic: 'escrow.commands', retry: slow, holdKeys: true },
  'refund-executor': { topic: 'escrow.commands', retry: slow, holdKeys: true },
  'deal-timeout': { topic: 'deal.deadlines', retry: ['1s', '5s', '30s'] },
  'post-scheduler': { topic: 'delivery.commands', retry: ['1s', '10s', '60s'] },
  'delivery-verifier': { topic: 'delivery.commands', retry: ['1s', '10s', '60s'] },
  reconciliation: { topic: 'reconciliation.triggers', retry: ['5s', '60s'] },
}
