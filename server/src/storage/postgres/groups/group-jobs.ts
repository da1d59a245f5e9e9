import { isStorableText } from '../../../core/text/storable-text.ts'
import { KnownError } from '../../../errors.ts'
import type { GroupJobsQuery, PutGroupJob, StoredGroupJob } from '../../contract/groups.ts'
import { readJson, readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const insertJob: Statement = {
  name: 'insert-group-job',
  text: `insert into redrive.group_jobs (id, version, state, document) values ($1, 1, $2, $3)
    on conflict (id) do nothing returning 1`,
}
const updateJob: Statement = {
  name: 'update-group-job',
  text: `update redrive.group_jobs set version = version + 1, state = $2, document = $3
    where id = $1 and version = $4 returning 1`,
}

export async function putGroupJob({ connection }: Transaction, command: PutGroupJob): Promise<undefined> {
  const { id, version, state } = command
  const values = [id, state, JSON.stringify(command.document)]
  const rows =
    version === 0
      ? await connection.query(insertJob, values)
      : await connection.query(updateJob, [...values, version])
  if (rows.length === 0)
    throw new KnownError('GROUP_JOB_CHANGED', `job ${id} is no longer at version ${version}`)
}

const readJob: Statement = {
  name: 'read-group-job',
  text: 'select j.* from redrive.group_jobs j where j.id = $1',
}
const readJobs: Statement = {
  name: 'page-of-group-jobs',
  text: `select j.* from redrive.group_jobs j
    where ($1::text[] is null or j.state = any ($1::text[])) and ($2::text is null or j.id < $2)
    order by j.id desc limit $3`,
}

export async function getGroupJob(connections: Connections, id: string): Promise<StoredGroupJob | null> {
  if (!isStorableText(id)) return null
  const [row] = await connections.read(readJob, [id])
  return row === undefined ? null : decodeJob(row)
}

export async function listGroupJobs(
  connections: Connections,
  { states, beforeId, countMax }: GroupJobsQuery,
): Promise<StoredGroupJob[]> {
  const wanted = states === undefined ? null : encodeTexts([...states])
  return (await connections.read(readJobs, [wanted, beforeId ?? null, countMax])).map(decodeJob)
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
