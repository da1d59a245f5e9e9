import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type Agent, request as sendRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../certificates.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

describe('a server with a certificate', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redrive-tls-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const writeCertificate = async (name: string) => {
    const { certificate, key } = issue(name)
    await writeFile(join(folder, 'key.pem'), key)
    await writeFile(join(folder, 'cert.pem'), certificate)
  }
  const start = () =>
    startTestServer({
      access: 'keys',
      host: '127.0.0.1',
      'tls.cert': join(folder, 'cert.pem'),
      'tls.key': join(folder, 'key.pem'),
      'tls.reload_interval': 20,
    })
  const authority = createAuthority('a test')
  const issue = (name: string) => authority.issue({ name, hosts: ['localhost', '127.0.0.1'] })

  const get = (url: string, agent?: Agent) =>
    new Promise<number>((resolve, reject) => {
      const options = { rejectUnauthorized: false, ...(agent !== undefined && { agent }) }
      const request = sendRequest(`${url}/health`, options, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      request.on('error', reject).end()
    })
  const readName = (url: string) =>
    new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(url)
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().subject.CN))
        socket.end()
      })
      socket.on('error', reject)
    })

  it('the server replaces its certificate under load, and keeps the old one while new files are invalid', async () => {
    await writeCertificate('first')
    const { url, lines } = await start()
    expect(url).toMatch(/^https:/)
    expect(await readName(url)).toBe('first')
    let isDone = false
    const statuses: number[] = []
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!isDone) statuses.push(await get(url))
      }),
    )
    await writeFile(join(folder, 'cert.pem'), 'not a certificate')
    await pollUntil(
      async () => lines.filter(({ msg }) => msg.includes('the old one stays in use')).length,
      (count) => count > 0,
    )
    expect(await readName(url)).toBe('first')
    await writeCertificate('second')
    await pollUntil(
      () => readName(url),
      (name) => name === 'second',
    )
    isDone = true
    await load
    expect(new Set(statuses)).toEqual(new Set([200]))
  })

  it('plain HTTP gets no answer on a port with a certificate', async () => {
    await writeCertificate('first')
    const { url } = await start()
    await expect(fetch(url.replace('https:', 'http:'))).rejects.toThrow()
    expect(await get(url)).toBe(200)
  })

  it('the server does not start with files that do not belong together, and names them', async () => {
    await writeCertificate('first')
    await writeFile(join(folder, 'key.pem'), issue('other').key)
    await expect(start()).rejects.toMatchObject({ code: 'TLS_FILES_INVALID' })
    await expect(startTestServer({ 'tls.cert': join(folder, 'cert.pem') })).rejects.toMatchObject({
      code: 'SETTING_INVALID',
    })
  })
})
