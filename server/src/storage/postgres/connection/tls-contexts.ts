import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { KnownError } from '../../../errors.ts'
import type { PemSource, TlsSource } from '../../contract/tls.ts'

type PemTexts = Readonly<{
  roots: string | undefined
  certificate: string | undefined
  key: string | undefined
}>

/** A Vault that does not answer must not stop new connections, if the last certificates are still there. */
const repeatedReadMsMax = 1_000

/**
 * Certificates and key for new connections. They are read again for every connection, so that a rotation
 * needs no restart. If they cannot be read, or are replaced one after the other and do not fit for a moment,
 * the last known ones stay in use.
 */
export class TlsContexts {
  readonly #source: TlsSource
  #reading: Promise<SecureContext> | undefined
  #last: Readonly<{ texts: PemTexts; context: SecureContext }> | undefined
  #lastWarning: string | undefined

  constructor(source: TlsSource) {
    this.#source = source
  }

  async getCurrent(): Promise<SecureContext> {
    // Connections that are opened at the same time share one reading.
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    const last = this.#last
    if (last === undefined) return this.#reading
    try {
      const context = await waitAtMost(this.#reading, repeatedReadMsMax)
      this.#lastWarning = undefined
      return context
    } catch (error) {
      this.#warn(error)
      return last.context
    }
  }

  async #read(): Promise<SecureContext> {
    const { rootCertificates, client } = this.#source
    const [roots, certificate, key] = await Promise.all([
      typeof rootCertificates === 'object' ? readPem(rootCertificates) : undefined,
      client && readPem(client.certificate),
      client && readPem(client.key),
    ])
    const texts = { roots, certificate, key }
    if (this.#last !== undefined && areEqual(this.#last.texts, texts)) return this.#last.context
    if (typeof rootCertificates === 'object') parseCertificates(rootCertificates, roots ?? '')
    if (client !== undefined) checkClient(client, certificate ?? '', key ?? '')
    const context = createSecureContext({
      ...(roots !== undefined && { ca: roots }),
      ...(rootCertificates === 'system' && { ca: readSystemRoots() }),
      ...(certificate !== undefined && { cert: certificate }),
      ...(key !== undefined && { key }),
    })
    this.#last = { texts, context }
    return context
  }

  /** Warns once per reason, not once per connection. */
  #warn(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error)
    if (reason === this.#lastWarning) return
    this.#lastWarning = reason
    this.#source.warn(
      `the certificates for TLS to the store cannot be used; the last known ones stay in use: ${reason}`,
    )
  }
}

function areEqual(one: PemTexts, other: PemTexts): boolean {
  return one.roots === other.roots && one.certificate === other.certificate && one.key === other.key
}

async function readPem(source: PemSource): Promise<string> {
  try {
    return await source.read()
  } catch (error) {
    if (!(error instanceof KnownError)) throw error
    throw new KnownError(error.code, `${source.name}: ${error.message}`, error)
  }
}

/** `createSecureContext` ignores texts without certificates, and would then trust no server. */
function parseCertificates(source: PemSource, text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.*?-----END[^-]*-----/gs) ?? []
  try {
    if (blocks.length > 0) return blocks.map((block) => new X509Certificate(block))
  } catch {
    // The error below names the source.
  }
  throw new KnownError(
    'SETTING_INVALID',
    `${source.name} has no valid certificate: it must be PEM text with -----BEGIN CERTIFICATE-----`,
  )
}

function checkClient(client: NonNullable<TlsSource['client']>, certificate: string, key: string): void {
  const [own] = parseCertificates(client.certificate, certificate)
  const privateKey = parseKey(client.key, key)
  if (own?.checkPrivateKey(privateKey)) return
  throw new KnownError(
    'SETTING_INVALID',
    `the key of ${client.key.name} does not belong to the certificate of ${client.certificate.name}: use the key with which the certificate was requested`,
  )
}

function parseKey(source: PemSource, text: string): KeyObject {
  if (/^-----BEGIN ENCRYPTED|^Proc-Type:.*ENCRYPTED/m.test(text)) {
    throw new KnownError(
      'SETTING_INVALID',
      `${source.name} is encrypted with a passphrase: remove it with openssl pkey -in <file> -out <new file>`,
    )
  }
  try {
    return createPrivateKey(text)
  } catch {
    // The error of the parser is not attached, because it could contain parts of the key.
    throw new KnownError(
      'SETTING_INVALID',
      `${source.name} has no valid key: it must be PEM text with -----BEGIN PRIVATE KEY-----`,
    )
  }
}

/** `default` includes the certificates of NODE_EXTRA_CA_CERTS. */
function readSystemRoots(): string[] {
  return [...new Set([...getCACertificates('system'), ...getCACertificates('default')])]
}

async function waitAtMost<T>(work: Promise<T>, msMax: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`reading them takes longer than ${msMax} ms`)), msMax)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}
