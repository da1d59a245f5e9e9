import type { CredentialHolder, CredentialRef } from '../../contract/access.ts'
import { toApiKey, toRole, toSession, toUser } from '../../shared/rows/access-rows.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { Database, Row } from '../connection/database.ts'
import { readAccessState } from './list-access.ts'

const rolesSql = `select b.namespace as bound_in, r.* from role_bindings b join roles r on r.id = b.role_id
  where b.user_id = ? order by b.id`

export function readHolder(database: Database, credential: CredentialRef): CredentialHolder | null {
  const { epoch } = readAccessState(database)
  const session =
    'sessionHash' in credential
      ? database.get('select * from sessions where hash = ?', credential.sessionHash)
      : undefined
  if ('sessionHash' in credential && session === undefined) return null
  const key = findKey(database, credential, session)
  if (key === undefined && !('userId' in credential)) return null
  const userId = 'userId' in credential ? credential.userId : readText(key ?? {}, 'user_id')
  const user = database.get('select * from users where id = ?', userId)
  if (user === undefined) return null
  const roles = database
    .all(rolesSql, userId)
    .map((row) => ({ namespace: readText(row, 'bound_in'), role: toRole(row) }))
  return {
    epoch,
    user: toUser(user),
    key: key === undefined ? null : toApiKey(key),
    session: session === undefined ? null : toSession(session),
    roles,
  }
}

function findKey(database: Database, credential: CredentialRef, session: Row | undefined): Row | undefined {
  if ('keyHash' in credential) {
    return database.get('select * from api_keys where hash = ?', credential.keyHash)
  }
  if (session === undefined) return undefined
  return database.get('select * from api_keys where id = ?', readText(session, 'key_id'))
}
