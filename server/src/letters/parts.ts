import type { Clock } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'
import type { StoreReads } from '../storage/contract/storage.ts'

/** Dependencies of the letters layer. */
export type LettersParts = Readonly<{
  storage: StoreReads
  /**
   * `readLastLeaseCallAt` and `quotas` are absent if no server runs, as in commands that open the store
   * themselves.
   */
  engine: Pick<Engine, 'write'> & Partial<Pick<Engine, 'readLastLeaseCallAt' | 'quotas'>>
  clock: Clock
  /** Unique name of this server in cluster-wide locks; default: a random UUID. */
  owner?: string
  random?: () => number
  retention?: RetentionPolicy
  /** Number of letters that one campaign step freezes and sends. */
  campaignSteps?: CampaignSteps
  log?: LettersLog
}>

export type RetentionPolicy = Readonly<{
  /** How long ended letters stay live before they are archived. */
  keepUs: number
  /** How long they stay in the archive after that. */
  archiveUs: number
}>

export type CampaignSteps = Readonly<{ frozenMax: number; sentMax: number }>

/** The subset of a pino logger that is used here. */
export interface LettersLog {
  info(fields: object, sentence: string): void
  warn(fields: object, sentence: string): void
}

export const silent: LettersLog = { info: () => {}, warn: () => {} }

/** Maximum letters per transaction. A long transaction would block other writers. */
export const stepLettersMax = 1_000
/** Maximum number of letter ids in one call. For more, use a campaign with a filter. */
export const namedLettersMax = 10_000
