/** E-mails over real SMTP conversations. */
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterEach, describe, expect, it } from 'vitest'
import { decodeTarget } from '../../src/core/alerts/channel.ts'
import type { Notification } from '../../src/core/alerts/notification.ts'
import { createChannelSender } from '../../src/drivers/notify/send/create-channel-sender.ts'
import { createAuthority } from '../certificates.ts'
import { createTestStore } from '../conformance/support/test-stores.ts'
import { noon } from '../make.ts'
import { aNotification, anAlert } from './notifications.ts'
import { advanceUntil, createTestClock, queueNotification, startNotifyNode } from './notify-system.ts'

const authority = createAuthority('mail of tests')
const certificate = authority.issue({ name: 'mail', hosts: ['localhost', '127.0.0.1'] })
const expired = authority.issue({
  name: 'mail',
  hosts: ['localhost', '127.0.0.1'],
  validFrom: new Date(Date.now() - 10 * 86_400_000),
  validTo: new Date(Date.now() - 86_400_000),
})
const foreign = createAuthority('another').issue({ name: 'mail', hosts: ['127.0.0.1'] })
const otherHost = authority.issue({ name: 'mail', hosts: ['mail.example.com'] })

type Mail = { from: string; to: string[]; user: string | undefined; isSecure: boolean; source: string }

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function reply(code: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode: code })
}

async function startSmtp(options: SMTPServerOptions = {}) {
  const mails: Mail[] = []
  const server = new SMTPServer({
    cert: certificate.certificate,
    key: certificate.key,
    authOptional: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      password === 'correct' ? done(null, { user: username ?? '' }) : done(reply(535, 'wrong password')),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: session.user as string | undefined,
          isSecure: session.secure,
          source: Buffer.concat(chunks).toString(),
        })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { port: (server.server.address() as AddressInfo).port, mails }
}

const base = { host: '127.0.0.1', from: 'redrive@example.com', to: ['ann@example.com', 'bob@example.com'] }

async function send(values: Record<string, unknown>, notification: Notification = aNotification()) {
  const decoded = decodeTarget('email', { ...base, tls_ca: authority.certificate, ...values })
  if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems))
  const sender = createChannelSender({
    addresses: { isLoopbackAllowed: true, allowed: [] },
    clock: { now: () => noon },
    timeoutMs: 2_000,
  })
  cleanups.push(() => sender.close())
  return sender.send(decoded.target, notification)
}

/** The decoded parts of a multipart mail. */
function partsOf(source: string): string {
  return source
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

describe('an e-mail channel', () => {
  it('sends with STARTTLS and a password to all recipients, as text and as HTML', async () => {
    const { port, mails } = await startSmtp({ authOptional: false })
    const result = await send({ port, user: 'redrive', password: 'correct' })
    expect(result).toMatchObject({ isDelivered: true, status: 250 })
    expect(mails).toHaveLength(1)
    expect(mails[0]).toMatchObject({
      from: 'redrive@example.com',
      to: base.to,
      user: 'redrive',
      isSecure: true,
    })
    const source = partsOf(mails[0]?.source ?? '')
    expect(source).toContain('From: Redrive <redrive@example.com>')
    expect(source).toMatch(/Subject: \[Redrive\] CRITICAL: A new group of dead letters in\s+orders-dead/)
    expect(source).toContain('Message-ID: <n1@example.com>')
    expect(source).toContain('Auto-Submitted: auto-generated')
    expect(source).toContain('text/plain')
    expect(source).toContain('text/html')
    expect(source).toContain('Queue: orders-dead')
    expect(source).toContain('https://redrive.example.com/groups/7')
  })

  it('sends over TLS from the start', async () => {
    const { port, mails } = await startSmtp({ secure: true })
    expect(await send({ port, tls: 'tls' })).toMatchObject({ isDelivered: true })
    expect(mails[0]).toMatchObject({ isSecure: true })
  })

  it('sends without TLS only if the channel says so', async () => {
    const { port, mails } = await startSmtp({ disabledCommands: ['STARTTLS', 'AUTH'] })
    expect(await send({ port })).toMatchObject({
      isDelivered: false,
      isPermanent: true,
      errorClass: 'TlsError',
    })
    expect(mails).toEqual([])
    expect(await send({ port, tls: 'none' })).toMatchObject({ isDelivered: true })
    expect(mails[0]).toMatchObject({ isSecure: false })
  })

  it.each([
    ['of an unknown authority', foreign],
    ['that has expired', expired],
    ['of another host', otherHost],
  ])(
    'sends nothing to a server with a certificate %s, and tries again later',
    async (_, { certificate: cert, key }) => {
      const { port, mails } = await startSmtp({ cert, key })
      const result = await send({ port, user: 'redrive', password: 'correct' })
      expect(result).toMatchObject({ isDelivered: false, isPermanent: false })
      expect(mails).toEqual([])
    },
  )

  it('a wrong password is a permanent failure, and is not in its message', async () => {
    const { port } = await startSmtp({ authOptional: false })
    const result = await send({ port, user: 'redrive', password: 'secret-and-wrong' })
    expect(result).toMatchObject({
      isDelivered: false,
      isPermanent: true,
      status: 535,
      errorCode: 'smtp_535',
      errorClass: 'SmtpAuthError',
    })
    expect(JSON.stringify(result)).not.toContain('secret-and-wrong')
  })

  it('a recipient that is refused does not keep the mail from the others', async () => {
    const { port, mails } = await startSmtp({
      onRcptTo: ({ address }, _session, done) =>
        done(address.startsWith('ann') ? reply(550, 'unknown user') : null),
    })
    expect(await send({ port })).toMatchObject({
      isDelivered: true,
      refused: ['ann@example.com'],
      remaining: [],
    })
    expect(mails[0]?.to).toEqual(['bob@example.com'])
  })

  it.each([
    [550, true],
    [451, false],
  ])('if all recipients are refused with %i, the failure is permanent: %s', async (code, isPermanent) => {
    const { port } = await startSmtp({ onRcptTo: (_address, _session, done) => done(reply(code, 'no')) })
    expect(await send({ port })).toMatchObject({ isDelivered: false, isPermanent, errorCode: `smtp_${code}` })
  })

  it('a server that does not answer is a failure after the timeout', async () => {
    const { port } = await startSmtp({ onConnect: () => undefined })
    expect(await send({ port })).toMatchObject({ isDelivered: false, isPermanent: false })
  })

  it('an address that is not allowed is refused without a connection', async () => {
    let connections = 0
    const { port } = await startSmtp({
      onConnect: (_session, done) => {
        connections += 1
        done()
      },
    })
    const decoded = decodeTarget('email', { ...base, port })
    if ('problems' in decoded) throw new Error('invalid')
    const sender = createChannelSender({
      addresses: { isLoopbackAllowed: false, allowed: [] },
      clock: { now: () => noon },
      timeoutMs: 2_000,
    })
    cleanups.push(() => sender.close())
    const results = [
      await sender.send(decoded.target, aNotification()),
      await sender.send({ ...decoded.target, host: 'localhost' } as never, aNotification()),
    ]
    for (const result of results) expect(result).toMatchObject({ errorClass: 'ForbiddenAddressError' })
    expect(connections).toBe(0)
  })

  it('a hostile summary adds no header, no recipient and no command', async () => {
    const { port, mails } = await startSmtp()
    const text = 'x\r\nBcc: evil@example.com\r\nX-Evil: 1\r\n\r\n.\r\nMAIL FROM:<evil@example.com>\r\n'
    const alert = anAlert({ summary: text, queue: text, sampleError: text, subject: text })
    await send({ port }, aNotification({ alerts: [alert], rule: text }))
    expect(mails).toHaveLength(1)
    const [head = ''] = (mails[0]?.source ?? '').split('\r\n\r\n')
    expect(head).not.toMatch(/^(?:Bcc|X-Evil):/im)
    expect(mails[0]?.to).toEqual(base.to)
  })

  it('a temporary refusal is repeated until the server accepts the mail', async () => {
    let refusals = 3
    const { port, mails } = await startSmtp({
      onMailFrom: (_address, _session, done) => done(refusals-- > 0 ? reply(451, 'try again later') : null),
    })
    const store = await createTestStore('SQLite memory')
    const clock = createTestClock()
    const values = { ...base, port, tls_ca: authority.certificate }
    const node = await startNotifyNode(store, { clock, channels: [{ name: 'mail', kind: 'email', values }] })
    cleanups.push(() => node.stop(0).then(store.drop))
    await queueNotification(node, aNotification(), ['mail'])
    await advanceUntil(node, clock, () => node.reports.length === 4)
    expect(node.reports.map(({ outcome }) => outcome)).toEqual(['retried', 'retried', 'retried', 'delivered'])
    expect(mails).toHaveLength(1)
  })

  it('a recipient that is refused for the time being gets the mail later, and the others get it once', async () => {
    let refusals = 2
    const { port, mails } = await startSmtp({
      onRcptTo: ({ address }, _session, done) =>
        done(address.startsWith('ann') && refusals-- > 0 ? reply(450, 'greylisted') : null),
    })
    const store = await createTestStore('SQLite memory')
    const clock = createTestClock()
    const values = { ...base, port, tls_ca: authority.certificate }
    const node = await startNotifyNode(store, { clock, channels: [{ name: 'mail', kind: 'email', values }] })
    cleanups.push(() => node.stop(0).then(store.drop))
    await queueNotification(node, aNotification(), ['mail'])
    await advanceUntil(node, clock, () => mails.length === 2)
    expect(mails.map(({ to }) => to)).toEqual([['bob@example.com'], ['ann@example.com']])
    expect(mails[1]?.source).toContain('To: ann@example.com, bob@example.com')
  })
})
