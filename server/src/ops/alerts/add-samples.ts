/** Adds the error of a letter to alerts about letters, when they are first notified or fire. */
import type { Alert } from '../../core/alerts/alert.ts'
import type { GroupFacts } from '../../storage/contract/letters.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

type Reads = Pick<StoreReads, 'listGroups' | 'getLetters'>

/** Alerts beyond this number have no sample. */
const samplesMax = 50
const errorLengthMax = 500

/** Returns the alerts in the same order. */
export async function addSamples(storage: Reads, alerts: readonly Alert[]): Promise<readonly Alert[]> {
  const wanted = alerts.filter(needsSample).slice(0, samplesMax)
  if (wanted.length === 0) return alerts
  const found = await Promise.all(
    wanted.map(async (alert) => [alert.id, await findGroup(storage, alert)] as const),
  )
  const ids = [...new Set(found.flatMap(([, group]) => group?.sampleId ?? []))]
  const letters = await storage.getLetters(ids, 'head')
  const errors = new Map(letters.map((letter) => [letter.rootId, letter.failure?.message ?? null]))
  const byAlert = new Map(found)
  return alerts.map((alert) => {
    const group = byAlert.get(alert.id)
    const error = group?.sampleId == null ? null : (errors.get(group.sampleId) ?? null)
    return error === null ? alert : { ...alert, sampleError: error.slice(0, errorLengthMax).toWellFormed() }
  })
}

function needsSample({ state, queue, sampleError }: Alert): boolean {
  return state === 'firing' && queue !== null && sampleError === null
}

/** The group of the alert, or the largest one of its queue. */
async function findGroup(storage: Reads, { queue, groupId }: Alert): Promise<GroupFacts | undefined> {
  const states = ['waiting', 'scheduled', 'leased', 'dead'] as const
  const filter = groupId === null ? { queues: [queue ?? ''], states } : { groupIds: [groupId] }
  const [group] = await storage.listGroups({ filter, isEmptyToo: false, countMax: 1 })
  return group
}
