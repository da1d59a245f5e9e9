/** Describes failures of TLS to a database, each as one sentence with the address and an instruction. */
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls'
import type { TlsSource } from '../../contract/tls.ts'

/** No connection was established that is as secure as sslmode demands. Nothing was sent. */
export class TlsError extends Error {
  readonly describe: (address: string) => string

  constructor(describe: (address: string) => string, cause?: unknown) {
    super(describe('the database server'), { cause })
    this.describe = describe
  }
}

/** The handshake failed: no common version, or one side rejected the certificate of the other. */
export class HandshakeError extends TlsError {}

export function createNoTlsError({ mode }: TlsSource): TlsError {
  return new TlsError(
    (address) =>
      `${address} does not offer TLS, which sslmode ${mode} requires: turn on ssl in postgresql.conf of the database server, or set sslmode to prefer or disable`,
  )
}

/** Returns the reason why the certificate of the server is not accepted, or undefined if it is. */
export function checkServerCertificate(
  socket: TLSSocket,
  host: string,
  source: TlsSource,
  now: Date,
): TlsError | undefined {
  const { mode, rootCertificates } = source
  // libpq: with a root certificate, require means verify-ca.
  if (!mode.startsWith('verify') && !(mode === 'require' && rootCertificates !== undefined)) return undefined
  const certificate = socket.getPeerCertificate()
  if (!socket.authorized) {
    const code = readCode(socket.authorizationError)
    return describePeriod(certificate, code, now) ?? describeUntrusted(certificate, code, source)
  }
  if (mode !== 'verify-full' || checkServerIdentity(host, certificate) === undefined) return undefined
  return new TlsError(
    (address) =>
      `the certificate of ${address} is for ${listNames(certificate)}, but sslmode verify-full expects ${host}: use a host name of the certificate in the store URL, or install a certificate for ${host} on the database server`,
  )
}

export function createHandshakeError(error: Error, source: TlsSource): HandshakeError {
  const code = readCode(error)
  const reason = describeAlert(error)
  if (source.client !== undefined && /ALERT.*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT)/.test(code)) {
    const { name } = source.client.certificate
    return new HandshakeError(
      (address) =>
        `${address} does not accept the client certificate of ${name}: ${reason}; use a certificate that is valid now and signed by an authority in ssl_ca_file of the database server`,
      error,
    )
  }
  return new HandshakeError(
    (address) =>
      `the TLS handshake with ${address} failed: ${reason}; check ssl_min_protocol_version, ssl_ciphers and the certificate of the database server`,
    error,
  )
}

function describePeriod(certificate: PeerCertificate, code: string, now: Date): TlsError | undefined {
  const isLeafExpired = new Date(certificate.valid_to) < now
  if (code === 'CERT_HAS_EXPIRED') {
    const expired = isLeafExpired ? 'expired' : 'is signed by an authority whose certificate expired'
    const at = isLeafExpired ? ` at ${formatTime(certificate.valid_to)}` : ''
    const remedy = isLeafExpired
      ? 'renew the certificate of the database server'
      : 'renew the certificate of the authority, then update sslrootcert'
    return new TlsError(
      (address) =>
        `the certificate of ${address} ${expired}${at}, and it is now ${now.toISOString()}: ${remedy}`,
    )
  }
  if (code === 'CERT_NOT_YET_VALID') {
    return new TlsError(
      (address) =>
        `the certificate of ${address} is not valid before ${formatTime(certificate.valid_from)}, and it is now ${now.toISOString()}: check the clocks of this machine and of the authority`,
    )
  }
  return undefined
}

function describeUntrusted(certificate: PeerCertificate, code: string, source: TlsSource): TlsError {
  const { mode, rootCertificates } = source
  const roots = typeof rootCertificates === 'object' ? rootCertificates.name : 'the operating system'
  const subject = describeName(certificate.subject)
  const issuer = describeName(certificate.issuer)
  return new TlsError(
    (address) =>
      `the certificate of ${address} (subject ${subject}, issuer ${issuer}) is not signed by an authority of ${roots}, which sslmode ${mode} expects (${code}): set sslrootcert to the certificate of the authority that signed it`,
  )
}

function describeName(name: PeerCertificate['subject'] | undefined): string {
  const text = name?.CN ?? name?.O ?? name?.OU
  return text === undefined ? 'unknown' : JSON.stringify(String(text))
}

/** `DNS:db.example, IP Address:10.0.0.1` → `db.example, 10.0.0.1` */
function listNames(certificate: PeerCertificate): string {
  const alternatives = certificate.subjectaltname?.replaceAll(/(^|, )(DNS|IP Address|URI|email):/g, '$1')
  return alternatives ?? String(certificate.subject?.CN ?? 'no host')
}

function formatTime(text: string): string {
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? text : time.toISOString()
}

/** `…:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:…` → `tlsv1 alert unknown ca` */
function describeAlert(error: Error): string {
  if ('reason' in error && typeof error.reason === 'string') return error.reason
  return error.message.replace(/\s+/g, ' ').trim()
}

/** `authorizationError` is a code, although its type is Error. */
function readCode(error: unknown): string {
  if (typeof error === 'string') return error
  if (!(error instanceof Error)) return 'unknown reason'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
