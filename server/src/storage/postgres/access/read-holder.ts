import type { CredentialHolder, CredentialRef } from '../../contract/access.ts'
import { toApiKey, toRole, toSession, toUser } from '../../shared/rows/access-rows.ts'
import { type DatabaseRow, readJson, readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'

/** One statement, so that the epoch and the rows are of one moment. */
const columns = `a.epoch, to_json(u.*)::text as holder, (
    select coalesce(json_agg(json_build_object('namespace', b.namespace, 'role', to_json(r.*)) order by b.id), '[]')
    from redrive.role_bindings b join redrive.roles r on r.id = b.role_id where b.user_id = u.id
  )::text as roles`

const byUser: Statement = {
  name: 'read-holder-by-user',
  text: `select ${columns}, 'null' as key, 'null' as session
    from redrive.access_state a, redrive.users u where u.id = $1`,
}
const byKey: Statement = {
  name: 'read-holder-by-key',
  text: `select ${columns}, to_json(k.*)::text as key, 'null' as session
    from redrive.access_state a, redrive.api_keys k join redrive.users u on u.id = k.user_id where k.hash = $1`,
}
const bySession: Statement = {
  name: 'read-holder-by-session',
  text: `select ${columns}, to_json(k.*)::text as key, to_json(s.*)::text as session
    from redrive.access_state a, redrive.sessions s
      join redrive.api_keys k on k.id = s.key_id join redrive.users u on u.id = k.user_id where s.hash = $1`,
}

export async function readHolder(
  connections: Connections,
  credential: CredentialRef,
): Promise<CredentialHolder | null> {
  const [row] = await connections.read(...choose(credential))
  return row === undefined ? null : toHolder(row)
}

function choose(credential: CredentialRef): [Statement, string[]] {
  if ('userId' in credential) return [byUser, [credential.userId]]
  if ('keyHash' in credential) return [byKey, [credential.keyHash]]
  return [bySession, [credential.sessionHash]]
}

function toHolder(row: Row): CredentialHolder {
  const key = readJson<DatabaseRow | null>(row, 'key')
  const session = readJson<DatabaseRow | null>(row, 'session')
  const roles = readJson<readonly { namespace: string; role: DatabaseRow }[]>(row, 'roles')
  return {
    epoch: readNumber(row, 'epoch'),
    user: toUser(readJson<DatabaseRow>(row, 'holder')),
    key: key === null ? null : toApiKey(key),
    session: session === null ? null : toSession(session),
    roles: roles.map((bound) => ({ namespace: readText(bound, 'namespace'), role: toRole(bound.role) })),
  }
}
