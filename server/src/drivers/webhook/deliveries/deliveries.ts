/** The delivery to consumers, as operators see and change it. */

import type { Attempt } from '../../../core/webhook/attempt.ts'
import type { DeliverySettings } from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { SigningSecrets } from '../../../core/webhook/signature.ts'
import type { Attribution } from '../../../engine/engine.ts'
import type {
  AttemptsQuery,
  ConsumerFigures,
  DeliveryFigures,
  StoredAttempt,
  StoredDelivery,
} from '../../../storage/contract/deliveries.ts'
import type { ConsumerCounts } from '../../../storage/contract/webhooks.ts'

export interface Deliveries {
  /** All consumers, in the order of their numbers, with what the last minutes brought. */
  list(query: ConsumerListQuery): Promise<readonly ConsumerReport[]>
  /** Rejects with CONSUMER_NOT_FOUND, like all that follow. */
  get(channelId: string, consumerId: string): Promise<ConsumerReport>
  changeSettings(
    of: ConsumerName,
    changes: Partial<DeliverySettings>,
    attribution: Attribution,
  ): Promise<ConsumerReport>
  /** The consumer gets no pushes until it is resumed. Its jobs wait. */
  pause(of: ConsumerName, attribution: Attribution): Promise<ConsumerReport>
  resume(of: ConsumerName, attribution: Attribution): Promise<ConsumerReport>
  /** Ends the disabling of a consumer that failed for too long, and closes its breaker. */
  enable(of: ConsumerName, attribution: Attribution): Promise<ConsumerReport>
  readSecrets(of: ConsumerName): Promise<SigningSecrets>
  /** The previous secret signs, too, until the overlap ends. */
  rotateSecret(of: ConsumerName, overlapUs: number, attribution: Attribution): Promise<SigningSecrets>
  /** Pushes a test message now. No job is created; the attempt is recorded. */
  test(of: ConsumerName, test: TestPush, attribution: Attribution): Promise<Attempt>
  listAttempts(query: AttemptsQuery): Promise<readonly StoredAttempt[]>
}

export type TestPush = Readonly<{ payload: Uint8Array; contentType: string }>
export type ConsumerName = Readonly<{ channelId: string; consumerId: string }>
export type ConsumerListQuery = Readonly<{ channelId?: string; afterNumber?: number; countMax: number }>

export type ConsumerReport = Readonly<{
  counts: ConsumerCounts
  stored: StoredDelivery
  /** The attempts of the last `figureMinutes` minutes. */
  figures: DeliveryFigures & Partial<Pick<ConsumerFigures, 'consumer'>>
}>

export const figureMinutes = 15
