import type { Clock } from '../core/instant.ts'
import type { Engine } from '../engine/engine.ts'
import type { Storage } from '../storage/contract/storage.ts'

/** What letters need of the rest. */
export type LettersParts = Readonly<{
  storage: Storage
  engine: Pick<Engine, 'noticeItems'>
  clock: Clock
  /** Names this server in cluster locks, unlike any other; made up unless given. */
  owner?: string
  random?: () => number
  retention?: RetentionPolicy
  /** How many letters one step of a campaign freezes and sends. */
  campaignSteps?: CampaignSteps
  log?: LettersLog
}>

export type RetentionPolicy = Readonly<{
  /** How long what ended stays among the live letters. */
  keepUs: number
  /** How long it stays in the archive after that. */
  archiveUs: number
}>

export type CampaignSteps = Readonly<{ frozenMax: number; sentMax: number }>

/** A logger as pino makes them. */
export interface LettersLog {
  info(fields: object, sentence: string): void
  warn(fields: object, sentence: string): void
}

export const silent: LettersLog = { info: () => {}, warn: () => {} }

/** Long transactions keep all others waiting: what concerns many letters is done in steps. */
export const stepLettersMax = 1_000
/** Letters that a call may name. More of them are a campaign with a filter. */
export const namedLettersMax = 10_000
