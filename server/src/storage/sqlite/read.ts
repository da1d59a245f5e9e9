import { listAudit } from './audit.ts'
import { readCounts, verifyCounts } from './counts.ts'
import type { Database } from './database.ts'
import { listArchive, listItems, nextDueAt } from './list.ts'
import { getQueue, listQueues } from './queues.ts'
import type { ReadCall } from './thread-messages.ts'

export function read(database: Database, call: ReadCall): unknown {
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
    case 'next-due':
      return nextDueAt(database)
    case 'verify':
      return verify(database)
  }
}

/** In one snapshot: rows and counts of different moments would differ though nothing is wrong. */
function verify(database: Database) {
  database.exec('begin')
  try {
    return verifyCounts(database)
  } finally {
    database.exec('commit')
  }
}
