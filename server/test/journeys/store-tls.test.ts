import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { createAuthority, type IssuedCertificate } from '../certificates.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

const hosts = ['localhost']
const authority = createAuthority('The authority')
const trusted = authority.issue({ name: 'database', hosts })
const untrusted = createAuthority('Another authority').issue({ name: 'database', hosts })

const postgres = await requireService('privatePostgres', {
  settings: { ssl: 'on', ssl_cert_file: 'server.crt', ssl_key_file: 'server.key' },
  files: toFiles(trusted),
})
const folder = mkdtempSync(join(tmpdir(), 'redrive-store-tls-'))
const root = join(folder, 'root.crt')
writeFileSync(root, authority.certificate)

afterAll(async () => {
  if (postgres.missing === undefined) await postgres.end()
  rmSync(folder, { recursive: true })
})

function toFiles({ certificate, key }: IssuedCertificate): Record<string, string> {
  return { 'server.crt': certificate, 'server.key': key }
}

/** A restart ends the connections that were opened with the old certificate. */
async function restartWith(issued: IssuedCertificate): Promise<void> {
  await postgres.stop()
  await postgres.writeFiles(toFiles(issued))
  await postgres.start()
}

describe('a server whose store requires TLS', needs(postgres), () => {
  it('requests get 503 without details while the certificate is not trusted, and are served again after it is replaced', async () => {
    const address = new URL(postgres.url)
    address.hostname = 'localhost'
    address.search = `sslmode=verify-full&sslrootcert=${root}`
    const settings = { 'store.retry_backoff_max': 200, 'postgres.connect_timeout': 2_000 }
    const { url, lines } = await startTestServer(settings, { kind: 'postgres', url: address.href })
    const client = createClient({ url })
    await client.createQueue({ name: 'orders' })

    await restartWith(untrusted)
    const refused = await pollUntil(
      async () => {
        const answer = await fetch(`${url}/api/v1/queues`)
        return {
          status: answer.status,
          retryAfter: answer.headers.get('retry-after'),
          text: await answer.text(),
        }
      },
      ({ text }) => text.includes('STORE_TLS_FAILED'),
    )
    expect(refused).toMatchObject({ status: 503, retryAfter: '2' })
    expect(refused.text).toContain('there is no secure connection to the store')
    expect(refused.text).not.toMatch(/localhost|authority/)
    const produced = await fetch(`${url}/v1/queues.list`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect(produced.status).toBe(454)
    await pollUntil(
      () => fetch(`${url}/health`),
      ({ status }) => status === 503,
    )
    await pollUntil(
      async () => lines,
      (all) =>
        all.some((line) => String(line.reason).includes('is not signed by an authority of sslrootcert')),
    )

    await restartWith(trusted)
    await pollUntil(
      () => fetch(`${url}/health`),
      ({ status }) => status === 200,
    )
    expect((await client.listQueues()).queues).toHaveLength(1)
  })
})
