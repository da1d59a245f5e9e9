/** The rules that every server has. They are on from the start, and can be changed or disabled. */
import { systemNamespace } from '../items/queue.ts'
import { usPerSecond } from '../time/instant.ts'
import type { FindingRule, Severity } from '../watching/findings.ts'
import type { AlertCondition, AlertRule, QueueSelection } from './rule.ts'

const minuteUs = 60 * usPerSecond
const hourUs = 60 * minuteUs

export const ruleDefaults = {
  namespace: systemNamespace,
  description: '',
  isEnabled: true,
  severity: 'warning',
  holdUs: 0,
  clearAfterUs: 0,
  groupWaitUs: 30 * usPerSecond,
  repeatUs: 4 * hourUs,
  channels: null,
} as const satisfies Omit<AlertRule, 'name' | 'condition'>

export const allQueues: QueueSelection = { queues: [], letterClasses: [], excludedLetterClasses: [] }
export const activeUsDefault = 24 * hourUs

const rule = (name: string, description: string, changes: Partial<AlertRule>): AlertRule => ({
  ...ruleDefaults,
  name,
  description,
  condition: { type: 'count-drift' },
  ...changes,
})
const finding = (found: FindingRule, findingSeverity: Severity | null = null): AlertCondition => ({
  type: 'finding',
  findings: [found],
  findingSeverity,
  subjects: [],
})

export const builtInRules: readonly AlertRule[] = [
  rule('WorkerHeartbeatMissing', 'A worker sends no heartbeats.', {
    severity: 'critical',
    condition: finding('worker-missing'),
  }),
  rule('WorkerStuckProcessing', 'A worker processes no messages, although some wait.', {
    condition: finding('worker-stuck'),
  }),
  rule('DLQFinancial', 'A dead queue of the class financial has letters.', {
    severity: 'critical',
    condition: { ...allQueues, type: 'letters', countMin: 1, letterClasses: ['financial'] },
  }),
  rule('DLQNonFinancial', 'A dead queue of another class has letters.', {
    condition: { ...allQueues, type: 'letters', countMin: 1, excludedLetterClasses: ['financial'] },
  }),
  rule('ConsumerLagCritical', 'The lag of a consumer group is above its critical limit.', {
    severity: 'critical',
    condition: finding('lag', 'CRITICAL'),
  }),
  rule('ConsumerLagWarning', 'The lag of a consumer group is above its warning limit.', {
    holdUs: 5 * minuteUs,
    condition: finding('lag', 'WARNING'),
  }),
  rule('WorkerDraining', 'A worker takes too long to shut down.', {
    condition: finding('worker-draining'),
  }),
  rule('WorkerExpected', 'Too few workers of an expected type appeared.', {
    condition: finding('worker-expected'),
  }),
  rule('RedisDown', 'Heartbeats in Redis cannot be read.', {
    holdUs: minuteUs,
    condition: finding('redis-down'),
  }),
  rule('GroupRegressed', 'A resolved group got a letter.', {
    condition: { ...allQueues, type: 'group', kinds: ['regressed'], activeUs: activeUsDefault },
  }),
  rule('GroupNew', 'Letters died for a new cause. Off at first: the rules about letters report them, too.', {
    isEnabled: false,
    condition: { ...allQueues, type: 'group', kinds: ['new'], activeUs: activeUsDefault },
  }),
  rule('WebhookConsumerStopped', 'A webhook consumer gets no pushes, because they all failed.', {
    holdUs: minuteUs,
    condition: { type: 'consumer', statuses: ['held', 'disabled'] },
  }),
  rule('KafkaRetentionNear', 'Kafka soon removes records of a dead-letter topic that are not read yet.', {
    severity: 'critical',
    condition: { type: 'kafka-retention' },
  }),
  rule('CountDrift', 'Counts differed from their rows, and were repaired: report this as a defect.', {
    condition: { type: 'count-drift' },
  }),
]

const byName: ReadonlyMap<string, AlertRule> = new Map(builtInRules.map((each) => [each.name, each]))

export function findBuiltInRule(name: string): AlertRule | undefined {
  return byName.get(name)
}
