import { findArchivedLetters } from '../archive/list-archive.ts'
import { listAudit } from '../audit/audit.ts'
import { getCampaign, listCampaignLetters, listCampaigns } from '../campaigns/campaigns.ts'
import type { Database } from '../connection/database.ts'
import { readCounts } from '../counts/counts.ts'
import { countLetters, countOpenSince } from '../counts/letter-count-queries.ts'
import { verifyCounts } from '../counts/verify.ts'
import { compareArrivals } from '../counts/verify-arrivals.ts'
import { nextDueAt } from '../items/advance.ts'
import { listArchive, listItems } from '../items/list-items.ts'
import { listEdits } from '../letters/edits.ts'
import {
  findLettersByUuid,
  getArchivedLetters,
  getLetters,
  listArchivedLetters,
  readPayloadSizes,
} from '../letters/letters.ts'
import { groupArrivals, groupSlugs, listGroups } from '../letters/list-groups.ts'
import { listLetters } from '../letters/list-letters.ts'
import { getQueue, listQueues } from '../queues/queues.ts'
import type { ReadCall } from './thread-messages.ts'

/** In one snapshot: rows and counts of different moments would differ though nothing is wrong. */
export function read(database: Database, call: ReadCall): unknown {
  database.run('begin')
  try {
    return answer(database, call)
  } finally {
    database.run('commit')
  }
}

function answer(database: Database, call: ReadCall): unknown {
  switch (call.read) {
    case 'queue':
      return getQueue(database, call.name)
    case 'queues':
      return listQueues(database, call.query)
    case 'counts':
      return readCounts(database, call.query.queue)
    case 'items':
      return listItems(database, call.query)
    case 'archive':
      return listArchive(database, call.query)
    case 'audit':
      return listAudit(database, call.query)
    case 'letters-by-id':
      return getLetters(database, call.letterIds, call.bytes)
    case 'archived-letters-by-id':
      return getArchivedLetters(database, call.letterIds)
    case 'letter-weights':
      return readPayloadSizes(database, call.letterIds, call.place)
    case 'letters-by-uuid':
      return findLettersByUuid(database, call.uuids)
    case 'letters':
      return listLetters(database, call.query)
    case 'archived-letters':
      return listArchivedLetters(database, call.query)
    case 'found-archived':
      return findArchivedLetters(database, call.query)
    case 'letter-counts':
      return countLetters(database, call.query)
    case 'open-since':
      return countOpenSince(database, call.since, call.queues)
    case 'groups':
      return listGroups(database, call.query)
    case 'group-slugs':
      return groupSlugs(database, call.groupIds)
    case 'group-arrivals':
      return groupArrivals(database, call.groupIds, call.since)
    case 'edits':
      return listEdits(database, call.letterId)
    case 'campaign':
      return getCampaign(database, call.id)
    case 'campaigns':
      return listCampaigns(database, call.query)
    case 'campaign-letters':
      return listCampaignLetters(database, call.query)
    case 'next-due':
      return nextDueAt(database)
    case 'verify':
      return call.isRepairableOnly
        ? verifyCounts(database)
        : [...verifyCounts(database), ...compareArrivals(database)]
  }
}
