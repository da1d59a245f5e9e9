import type { Queue } from '../../../core/items/queue.ts'
import { formatDuration } from '../../../core/time/duration.ts'

/**
 * The warnings for the creator of a queue: a queue without a dead queue does not keep the items that fail as
 * dead letters.
 */
export function warnAboutNewQueue(queue: Queue): readonly string[] {
  const { name, deadQueue, onDead } = queue
  if (deadQueue !== null) return []
  const consequence =
    onDead === 'keep'
      ? 'stay in it as dead and cannot be redriven: only a request deletes them'
      : 'are deleted, counted as dropped and logged'
  const advice = onDead === 'keep' ? '' : ', or on_dead to keep them'
  return [
    `queue ${name} has no dead queue: items that ${describeDeath(queue)} ${consequence}. ` +
      `Set dead_queue to keep them as dead letters${advice}. Dead letters that it holds itself are not affected`,
  ]
}

function describeDeath({ attemptsMax, expireTimeoutUs }: Queue): string {
  const wait = `wait longer than ${formatDuration(expireTimeoutUs)}`
  return attemptsMax === 0 ? wait : `fail more than ${attemptsMax} times or ${wait}`
}
