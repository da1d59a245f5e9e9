/**
 * Opens connections as sslmode demands, before the driver sends anything.
 *
 * The driver can request TLS, but not fall back to a plain connection, not read certificates again for each
 * connection, and not check a certificate as libpq does. So this file negotiates TLS, and gives the driver a
 * stream that is ready for the startup message.
 */
import { readFile } from 'node:fs/promises'
import { isIP, Socket } from 'node:net'
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls'
import pg from 'pg'
import { KnownError } from '../../../errors.ts'
import { formatHost, readHosts, removeHosts, type StoreHost } from '../../contract/hosts.ts'
import {
  createTlsSource,
  readTlsParameters,
  removeTlsParameters,
  type TlsSource,
} from '../../contract/tls.ts'
import { readOnlyCode } from './errors.ts'
import { HostChoice } from './host-choice.ts'
import { TlsContexts } from './tls-contexts.ts'
import {
  checkServerCertificate,
  createHandshakeError,
  createNoTlsError,
  HandshakeError,
  TlsError,
} from './tls-errors.ts'

type DriverOptions = Readonly<{ keepAlive?: boolean }>

/** The parts of the driver's connection that its type declarations leave out. */
interface DriverConnection extends pg.Connection {
  stream: Socket
  _connecting: boolean
  connect(port: number | string, host?: string): void
  attachListeners(stream: Socket): void
}
const BaseConnection = pg.Connection as unknown as new (options: DriverOptions) => DriverConnection
const BaseClient = pg.Client as unknown as new (
  config: pg.ClientConfig & { connection: DriverConnection },
) => pg.Client

/** A host that needs longer for a new connection is given up: another one may be the primary by now. */
const hostMsMax = 3_000

type ParameterStatus = Readonly<{ parameterName: string; parameterValue: string }>
/** PostgreSQL reports them before a connection is ready: one for a standby, one for a read-only database. */
const standbyParameters = ['in_hot_standby', 'default_transaction_read_only']

/** The message SSLRequest: its length, and a number in the place of the protocol version. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** For a URL without a source of its own: certificates and keys are files. */
export function createTlsSourceFromUrl(url: URL): TlsSource {
  return createTlsSource(readTlsParameters(url), {
    readPem: async (path) => {
      return readFile(path.replace(/^file:/, ''), 'utf8').catch((error: NodeJS.ErrnoException) => {
        throw new KnownError('SECRET_UNAVAILABLE', `the file cannot be read: ${error.code}`, error)
      })
    },
    showReference: (path) => path,
    warn: () => {},
  })
}

export type ConnectionConfig = Pick<pg.PoolConfig, 'connectionString' | 'ssl' | 'Client'>

/**
 * Returns a function that configures a pool, so that its connections use TLS as the source says, and the
 * chosen host.
 */
export function configureConnections(source: TlsSource, hosts: HostChoice): (url: URL) => ConnectionConfig {
  const Client = createClientClass(source, hosts) as unknown as new () => pg.ClientBase
  return (url) => ({ connectionString: toDriverUrl(url), ssl: false, Client })
}

/** A single connection with the TLS parameters of its URL. */
export function createPgClient(url: string, config: pg.ClientConfig = {}): pg.Client {
  const parsed = new URL(url)
  const Client = createClientClass(createTlsSourceFromUrl(parsed), new HostChoice(readHosts(parsed), false))
  return new Client({ ...config, connectionString: toDriverUrl(parsed), ssl: false })
}

function toDriverUrl(url: URL): string {
  return removeHosts(removeTlsParameters(url)).href
}

function createClientClass(source: TlsSource, hosts: HostChoice): new (config: pg.ClientConfig) => pg.Client {
  const contexts = new TlsContexts(source)
  return class extends BaseClient {
    constructor(config: pg.ClientConfig) {
      const { keepAlive = false } = config
      super({ ...config, connection: new NegotiatedConnection({ keepAlive }, source, contexts, hosts) })
    }
  }
}

class NegotiatedConnection extends BaseConnection {
  readonly #source: TlsSource
  readonly #contexts: TlsContexts
  readonly #hosts: HostChoice
  readonly #keepAlive: boolean

  constructor(options: DriverOptions, source: TlsSource, contexts: TlsContexts, hosts: HostChoice) {
    super(options)
    this.#source = source
    this.#contexts = contexts
    this.#hosts = hosts
    this.#keepAlive = options.keepAlive === true
  }

  override connect(port: number | string, host?: string): void {
    const chosen = this.#hosts.current
    if (chosen === undefined) {
      this.#connectTo(port, host)
      return
    }
    this.#rejectUnusable(chosen)
    this.#connectTo(chosen.port, chosen.host)
  }

  /** Gives the host up if it cannot be reached, hangs, or is a standby where a primary is needed. */
  #rejectUnusable(host: StoreHost): void {
    let isDecided = false
    const reject = (error?: unknown): void => {
      // The next host would have the same wrong certificate or password.
      if (!isDecided && !(error instanceof TlsError)) this.#hosts.reject(host)
      isDecided = true
    }
    const timer = setTimeout(() => {
      reject()
      const hangs = `${formatHost(host)} did not answer within ${hostMsMax} ms`
      this.stream.destroy(new Error(`connection terminated: ${hangs}`))
    }, hostMsMax)
    this.once('readyForQuery', () => {
      clearTimeout(timer)
      isDecided = true
    })
    this.once('error', reject)
    this.once('end', () => {
      clearTimeout(timer)
      reject()
    })
    this.once('errorMessage', (error: Readonly<{ code?: string }>) => {
      if (error.code?.startsWith('57P') === true) reject()
      isDecided = true
    })
    this.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
      if (isDecided || !this.#hosts.needsPrimary) return
      if (!standbyParameters.includes(parameterName) || parameterValue !== 'on') return
      reject()
      const refusal = new Error(`${formatHost(host)} accepts no writes, and no other host does`)
      this.stream.destroy(Object.assign(refusal, { code: readOnlyCode }))
    })
  }

  #connectTo(port: number | string, host?: string): void {
    // Without a host, `port` is the path of a Unix socket, which libpq never encrypts.
    if (this.#source.mode === 'disable' || typeof port === 'string' || host === undefined) {
      super.connect(port, host as string)
      return
    }
    this._connecting = true
    ignoreErrors(this.stream)
    this.#open(port, host).then(
      (stream) => this.#use(stream),
      (error: unknown) => {
        this.stream.destroy()
        this.emit('error', error)
        this.emit('end')
      },
    )
  }

  async #open(port: number, host: string): Promise<Socket> {
    try {
      return await this.#negotiate(port, host)
    } catch (error) {
      if (!(error instanceof HandshakeError) || !this.#mayBePlain) throw error
      // As libpq does: if the handshake fails, prefer uses a new connection without TLS.
      this.stream.destroy()
      this.stream = ignoreErrors(new Socket())
      await this.#dial(this.stream, port, host)
      return this.stream
    }
  }

  async #negotiate(port: number, host: string): Promise<Socket> {
    const socket = this.stream
    const context = await runUntilClosed(socket, this.#contexts.getCurrent())
    await this.#dial(socket, port, host)
    if (!(await runUntilClosed(socket, requestTls(socket)))) {
      if (this.#mayBePlain) return socket
      throw createNoTlsError(this.#source)
    }
    const secure = await this.#startTls(socket, host, context)
    const refusal = checkServerCertificate(secure, host, this.#source, new Date())
    if (refusal === undefined) return secure
    secure.destroy()
    throw refusal
  }

  async #dial(socket: Socket, port: number, host: string): Promise<void> {
    socket.setNoDelay(true)
    await runUntilClosed(
      socket,
      new Promise<void>((resolve) => {
        socket.connect(port, host, resolve)
      }),
    )
    if (this.#keepAlive) socket.setKeepAlive(true)
  }

  async #startTls(socket: Socket, host: string, secureContext: SecureContext): Promise<TLSSocket> {
    const options = {
      socket,
      secureContext,
      // The certificate is checked after the handshake, where the reason for a refusal is known.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
      // The name for the server's choice of a certificate may not be an address (RFC 6066).
      ...(isIP(host) === 0 && { servername: host }),
    }
    const secure = ignoreErrors(connectTls(options))
    const handshake = new Promise<void>((resolve) => {
      secure.once('secureConnect', resolve)
    })
    try {
      await runUntilClosed(secure, handshake)
      return secure
    } catch (error) {
      throw error instanceof Error && isTlsCode(error) ? createHandshakeError(error, this.#source) : error
    }
  }

  /** From here on the driver uses the stream as if it had connected it itself. */
  #use(stream: Socket): void {
    this.stream = stream
    let isReady = false
    this.once('readyForQuery', () => {
      isReady = true
    })
    stream.on('error', (error) => this.emit('error', isReady ? toLost(error) : this.#explain(error)))
    stream.on('close', () => this.emit('end'))
    this.attachListeners(stream)
    this.emit('connect')
  }

  /** In TLS 1.3 the server checks the client's certificate after the handshake has ended for the client. */
  #explain(error: Error): Error {
    if (isTlsCode(error)) return createHandshakeError(error, this.#source)
    const { client } = this.#source
    if (client === undefined || !('encrypted' in this.stream)) return error
    const hint = `the server may not accept the client certificate of ${client.certificate.name}`
    return Object.assign(new Error(`${error.message} directly after the TLS handshake; ${hint}`), {
      code: 'code' in error ? error.code : undefined,
    })
  }

  get #mayBePlain(): boolean {
    return this.#source.mode === 'prefer' || this.#source.mode === 'allow'
  }
}

/** Returns false if the server does not offer TLS. */
async function requestTls(socket: Socket): Promise<boolean> {
  socket.write(tlsRequest)
  const answer = await new Promise<Buffer>((resolve) => {
    socket.once('data', resolve)
  })
  const text = answer.toString('latin1')
  // More than one byte before the handshake can only come from someone between client and server.
  if (text === 'S') return true
  if (text === 'N') return false
  if (text.startsWith('E')) throw new Error('connection terminated: the server reported an error before TLS')
  throw new TlsError(
    (address) =>
      `${address} did not answer the request for TLS as PostgreSQL does: check host and port of the store URL`,
  )
}

/** Rejects when the socket fails or is closed first, for example by the driver's timeout. */
async function runUntilClosed<T>(socket: Socket, work: Promise<T>): Promise<T> {
  let stop = (): void => {}
  const closed = new Promise<never>((_, reject) => {
    const onClose = (): void => reject(new Error('Connection terminated unexpectedly'))
    socket.on('error', reject)
    socket.on('close', onClose)
    stop = () => {
      socket.off('error', reject)
      socket.off('close', onClose)
    }
    if (socket.destroyed) onClose()
  })
  return Promise.race([work, closed]).finally(() => stop())
}

/** `runUntilClosed` reports the first error. Later errors of an abandoned connection need no attention. */
function ignoreErrors<S extends Socket>(socket: S): S {
  socket.on('error', () => {})
  return socket
}

/** An established TLS connection that fails is a lost connection. */
function toLost(error: Error): Error {
  if (!isTlsCode(error)) return error
  return Object.assign(new Error(`connection terminated: ${error.message}`, { cause: error }), {
    code: 'ECONNRESET',
  })
}

function isTlsCode(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && /^(ERR_SSL_|ERR_TLS_|EPROTO)/.test(error.code)
}
