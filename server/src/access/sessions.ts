import type { Session } from '../core/access/records.ts'
import type { Clock, Instant } from '../core/time/instant.ts'
import { addDuration, usPerMs } from '../core/time/instant.ts'
import type { Attribution, Engine } from '../engine/engine.ts'
import { createSecret, hashSecret } from './api-key-text.ts'
import type { ChangeAccess } from './change-access.ts'
import { type Identities, refused } from './identities.ts'
import { audit } from './namespaces-and-users.ts'

/** Sessions of browsers. The browser keeps the token in a cookie that scripts cannot read. */
export interface Sessions {
  /** Rejects with CREDENTIAL_REFUSED if the key does not exist or has expired. */
  create(key: string, attribution: Omit<Attribution, 'actor'>): Promise<CreatedSession>
  /** The token is refused on every server when it resolves. */
  end(token: string, attribution: Attribution): Promise<void>
}

export type CreatedSession = Readonly<{ token: string; expiresAt: Instant; username: string }>

type Parts = Readonly<{
  engine: Pick<Engine, 'write'>
  change: ChangeAccess
  identities: Identities
  clock: Clock
  sessionMs: number
}>

export function createSessions({ engine, change, identities, clock, sessionMs }: Parts): Sessions {
  return {
    create: async (key, attribution) => {
      const { identity, keyId, expiresAt: keyEnd } = await identities.find({ keyHash: hashSecret(key) })
      if (keyId === null) throw refused('api key does not exist')
      const token = createSecret()
      const now = clock.now()
      const end = addDuration(now, sessionMs * usPerMs)
      const expiresAt = keyEnd === null ? end : Math.min(end, keyEnd)
      const session: Session = { hash: hashSecret(token), keyId, createdAt: now, expiresAt }
      const details = { key_prefix: identity.keyPrefix, expires_at: expiresAt }
      const entry = { at: now, actor: identity.name, ...audit('session.create', identity.userId, details) }
      await engine.write([
        { op: 'create-session', session, now },
        { op: 'audit', entries: [{ ...entry, ...attribution }] },
      ])
      return { token, expiresAt, username: identity.name }
    },
    end: async (token, attribution) => {
      const hash = hashSecret(token)
      const { identity } = await identities.find({ sessionHash: hash })
      await change(
        async () => ({
          changes: [{ change: 'delete-session', hash }],
          ...audit('session.delete', identity.userId, {}),
        }),
        attribution,
      )
    },
  }
}
