/** A server on a PostgreSQL database whose disk is full: a small tmpfs, which only root can mount. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findUnprivilegedUser } from '../../../tools/services/process/unprivileged-user.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { findObstacle, requirement } from '../conformance/support/machine-requirements.ts'
import { pollUntil } from '../http/poll-until.ts'
import { sendRequest } from '../http/store-server.ts'
import { startTestServer } from '../http/test-server.ts'
import { createQueueClient } from '../queue-api/queue-client.ts'

const execute = promisify(execFile)
const mebibyte = 2 ** 20
const timeout = 60_000

const unshare = await findObstacle('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', tmpdir()])
const obstacle = process.getuid?.() === 0 ? unshare : 'only root can mount a disk for another process'
const mountedDisk = requirement('a small tmpfs', obstacle)
const postgres = obstacle === undefined ? await requireService('privatePostgres') : undefined

describe(
  'a server whose PostgreSQL has a full disk',
  needs(mountedDisk, ...(postgres ? [postgres] : [])),
  () => {
    let folder: string
    let url: string
    let observer: Client
    const query = async (text: string) => (await observer.query(text)).rows[0]
    const target = { queue_name: 'q', request_timeout: '5s' }
    const { call, send } = createQueueClient(() => url, 'json')
    // Random, because PostgreSQL compresses payloads.
    const produceLarge = () => {
      const bytes = randomBytes(500_000).toString('base64')
      return send('queue.produce', { ...target, items: [{ bytes }] })
    }
    const waitForReserve = () =>
      pollUntil(
        () => query(`select pg_relation_size('redrive.disk_reserve')::int as bytes`),
        ({ bytes }) => bytes > 0,
        timeout,
      )
    const probe = async (path: string) => {
      const answer = await fetch(url + path)
      return { status: answer.status, text: await answer.text() }
    }

    beforeAll(async () => {
      if (postgres === undefined) return
      folder = await mkdtemp(join(tmpdir(), 'redrive-disk-full-'))
      await execute('mount', ['-t', 'tmpfs', '-o', 'size=40m,mode=700', 'none', folder])
      const user = await findUnprivilegedUser()
      if (user !== undefined) await chown(folder, user.uid, user.gid)
      const client = new Client({ connectionString: postgres.url })
      await client.connect()
      await client.query(`create tablespace small location '${folder}'`)
      await client.query('create database on_small tablespace small')
      await client.end()
      await writeFile(join(folder, 'ballast'), new Uint8Array(8 * mebibyte))
      const database = new URL(postgres.url)
      database.pathname = '/on_small'
      observer = new Client({ connectionString: database.href })
      await observer.connect()
      ;({ url } = await startTestServer({}, { kind: 'postgres', url: database.href }))
    }, timeout)
    afterAll(async () => {
      observer.on('error', () => {})
      // The server still has open files there.
      await postgres?.end()
      if (folder === undefined) return
      await execute('umount', [folder])
      await rm(folder, { recursive: true })
    })

    it('health reports it; completing, deleting and discarding still work; the server recovers automatically', {
      timeout,
    }, async () => {
      const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
      await call('queues.create', { queue_name: 'dead', requested_partitions: 1, ...timeouts })
      const created = { queue_name: 'q', requested_partitions: 1, dead_queue: 'dead', ...timeouts }
      await call('queues.create', created)
      const lease = async () => {
        const leased = await call('queue.lease', { ...target, client_id: 'me', batch_size: 1 })
        return { queue_name: 'q', partition: 0, ids: leased.items.map(({ id }: { id: string }) => id) }
      }
      await call('queue.produce', { ...target, items: [{ utf8: 'dies' }] })
      const [dying] = (await lease()).ids
      await call('queue.retry', { queue_name: 'q', partition: 0, items: [{ id: dying, dead: true }] })
      const [letter] = (await sendRequest(`${url}/api/v1/letters?queue=dead`, 'GET')).body.letters
      await waitForReserve()
      const full = await pollUntil(produceLarge, ({ status }) => status !== 200, timeout)
      expect(full.status).toBe(454)
      expect(full.body.message).toContain('no space left on the disk of the store')
      const health = await pollUntil(
        () => probe('/health'),
        ({ status }) => status === 503,
        timeout,
      )
      expect(health.text).toContain('no space left on the disk of the store')
      expect((await probe('/readyz')).status).toBe(503)
      expect((await probe('/healthz')).status).toBe(200)
      expect((await send('queue.produce', { ...target, items: [{ utf8: 'small' }] })).status).toBe(454)

      // Each of these was refused by a database without a reserve as soon as a table needed another page.
      expect((await send('queue.complete', { ...(await lease()), request_timeout: '5s' })).status).toBe(200)
      const { items } = await call('storage/items.list', { queue_name: 'q', limit: 2 })
      const ids = items.map(({ id }: { id: string }) => id)
      const deleted = await send('storage/items.delete', { queue_name: 'q', partition: 0, ids })
      expect(deleted.status).toBe(200)
      const discarding = { ids: [letter.id], reason: 'disk full' }
      const discarded = await sendRequest(`${url}/api/v1/letters/discard`, 'POST', discarding)
      expect(discarded).toMatchObject({ status: 200 })

      await rm(join(folder, 'ballast'))
      await pollUntil(
        () => probe('/readyz'),
        ({ status }) => status === 200,
        timeout,
      )
      expect((await produceLarge()).status).toBe(200)
    })
  },
)
