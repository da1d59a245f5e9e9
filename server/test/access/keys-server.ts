/** A server that requires keys, once for all tests of a `describe`. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { Settings } from '../../src/config/settings/settings.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createTestStore, needsOf, type StoreName } from '../conformance/support/test-stores.ts'
import { type Answer, type Body, sendRequest } from '../http/store-server.ts'
import { createReadableLog, type LogLine, testSettings } from '../http/test-server.ts'

export interface KeysServer {
  readonly url: string
  readonly lines: readonly LogLine[]
  /** The key of the administrator, from the first start. */
  readonly adminKey: string
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Sends a request as the administrator, and returns the body of an answer that must have status 200. */
  admin(path: string, body: object): Promise<Body>
  /** Creates a user with a key, bound to roles: `Viewer`, or `shop:Viewer` for one namespace. */
  createKey(options?: KeyOptions): Promise<CreatedKey>
  /** The URL of the database; empty for SQLite. */
  readonly storeUrl: string
  /**
   * Starts another server on the same store, which it can reach at another URL. It is stopped with the first
   * one.
   */
  startAnother(storeUrl?: string): Promise<string>
}

export type KeyOptions = Readonly<{ roles?: readonly string[]; scope?: string; expiresAt?: string }>
export type CreatedKey = Readonly<{ id: string; key: string; prefix: string; userId: string }>

export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` }
}

export function describeKeysServer(
  subject: string,
  store: StoreName,
  settings: Partial<Settings>,
  body: (server: KeysServer) => void,
): void {
  describe(subject, needsOf(store), () => {
    const running: RunningServer[] = []
    const { log, lines } = createReadableLog('debug')
    let adminKey = ''
    let place: Awaited<ReturnType<typeof createTestStore>>
    let users = 0
    const start = async (storeUrl?: string): Promise<string> => {
      const server = await startServer({
        settings: testSettings({ access: 'keys', ...settings }),
        store: storeUrl === undefined ? place.target : { kind: 'postgres', url: storeUrl },
        log,
        onFirstKey: (key) => {
          adminKey = key
        },
      })
      running.push(server)
      return server.url
    }
    beforeAll(async () => {
      place = await createTestStore(store)
      await start()
    })
    afterAll(async () => {
      await Promise.all(running.map((server) => server.stop(0)))
      await place?.drop()
    })
    const url = (): string => running[0]?.url ?? ''
    const request: KeysServer['request'] = (method, path, sent, headers) =>
      sendRequest(url() + path, method, sent, headers)
    const admin: KeysServer['admin'] = async (path, sent) => {
      const answer = await request('POST', path, sent, bearer(adminKey))
      if (answer.status === 200) return answer.body
      throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    body({
      get url() {
        return url()
      },
      lines,
      get storeUrl() {
        return place.target.kind === 'postgres' ? place.target.url : ''
      },
      get adminKey() {
        return adminKey
      },
      request,
      admin,
      createKey: async ({ roles = [], scope, expiresAt } = {}) => {
        const { id: userId } = await admin('/v1/users.create', { username: `user-${++users}` })
        for (const role of roles) {
          const [name = '', namespace = '_system'] = role.split(':').toReversed()
          await admin('/v1/rolebindings.create', { namespace, role_name: name, user_id: userId })
        }
        const created = await admin('/v1/apikeys.create', {
          user_id: userId,
          name: 'test',
          ...(scope !== undefined && { namespace_scope: scope }),
          ...(expiresAt !== undefined && { expires_at: expiresAt }),
        })
        return { ...created, userId }
      },
      startAnother: start,
    })
  })
}
