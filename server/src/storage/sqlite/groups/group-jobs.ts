import { KnownError } from '../../../errors.ts'
import type { GroupJobsQuery, PutGroupJob, StoredGroupJob } from '../../contract/groups.ts'
import { readJson, readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database, Row } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function putGroupJob({ database }: Transaction, command: PutGroupJob): undefined {
  const { id, version, state } = command
  const document = JSON.stringify(command.document)
  const put =
    version === 0
      ? database.run(
          'insert into group_jobs (id, version, state, document) values (?, 1, ?, ?) on conflict do nothing',
          id,
          state,
          document,
        )
      : database.run(
          'update group_jobs set version = version + 1, state = ?, document = ? where id = ? and version = ?',
          state,
          document,
          id,
          version,
        )
  if (put === 0) throw new KnownError('GROUP_JOB_CHANGED', `job ${id} is no longer at version ${version}`)
}

export function getGroupJob(database: Database, id: string): StoredGroupJob | null {
  const row = database.get('select * from group_jobs where id = ?', id)
  return row === undefined ? null : decodeJob(row)
}

export function listGroupJobs(
  database: Database,
  { states, beforeId, countMax }: GroupJobsQuery,
): StoredGroupJob[] {
  const wanted = states === undefined ? null : JSON.stringify(states)
  return database
    .all(
      `select * from group_jobs where (?1 is null or state in (select value from json_each(?1)))
         and (?2 is null or id < ?2) order by id desc limit ?3`,
      wanted,
      beforeId ?? null,
      countMax,
    )
    .map(decodeJob)
}

function decodeJob(row: Row): StoredGroupJob {
  const document = readJson<StoredGroupJob['document'] & { queue?: string }>(row, 'document')
  return {
    id: readText(row, 'id'),
    version: readNumber(row, 'version'),
    state: readText(row, 'state'),
    queue: document.queue ?? '',
    document,
  }
}
