import { KnownError } from '../../errors.ts'
import type { HeldLock } from '../contract/locks.ts'

export function lockLost(lock: HeldLock): KnownError {
  return new KnownError('LOCK_LOST', `lock ${lock.name} with token ${lock.token} is no longer held`)
}
