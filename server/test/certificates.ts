/**
 * Creates certificates for tests of TLS. Node reads certificates, but does not create them; this file encodes
 * the few fields that a test needs (RFC 5280).
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'

export type IssuedCertificate = Readonly<{ certificate: string; key: string }>

export interface CertificateAuthority {
  /** PEM text. */
  readonly certificate: string
  issue(options: CertificateOptions): IssuedCertificate
}

export type CertificateOptions = Readonly<{
  /** The common name: for PostgreSQL the user of a client certificate. */
  name: string
  /** Host names and IPv4 addresses. */
  hosts?: readonly string[]
  validFrom?: Date
  validTo?: Date
}>

const dayMs = 24 * 60 * 60 * 1_000

export function createAuthority(name: string): CertificateAuthority {
  const keys = createKeys()
  const own = encodeCertificate({ subject: name, issuer: name, isAuthority: true }, keys, keys.privateKey)
  return {
    certificate: own,
    issue: ({ name: subject, ...options }) => {
      const issued = createKeys()
      const key = issued.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      const fields = { subject, issuer: name, isAuthority: false, ...options }
      return { certificate: encodeCertificate(fields, issued, keys.privateKey), key }
    },
  }
}

type Keys = Readonly<{ publicKey: KeyObject; privateKey: KeyObject }>
type Fields = Omit<CertificateOptions, 'name'> &
  Readonly<{ subject: string; issuer: string; isAuthority: boolean }>

function createKeys(): Keys {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

function encodeCertificate(fields: Fields, keys: Keys, signer: KeyObject): string {
  const now = Date.now()
  const content = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    signatureAlgorithm,
    encodeName(fields.issuer),
    sequence(
      encodeTime(fields.validFrom ?? new Date(now - dayMs)),
      encodeTime(fields.validTo ?? new Date(now + dayMs)),
    ),
    encodeName(fields.subject),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...encodeExtensions(fields))),
  )
  const signature = sign('sha256', content, signer)
  const certificate = sequence(content, signatureAlgorithm, bitString(signature))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

function encodeExtensions({ isAuthority, hosts = [] }: Fields): Buffer[] {
  const yes = tagged(0x01, Buffer.from([0xff]))
  const basicConstraints = sequence(
    objectId(0x55, 0x1d, 0x13),
    yes,
    octetString(sequence(...(isAuthority ? [yes] : []))),
  )
  if (hosts.length === 0) return [basicConstraints]
  const names = hosts.map((host) =>
    isIPv4(host)
      ? tagged(0x87, Buffer.from(host.split('.').map(Number)))
      : tagged(0x82, Buffer.from(host, 'ascii')),
  )
  return [basicConstraints, sequence(objectId(0x55, 0x1d, 0x11), octetString(sequence(...names)))]
}

function encodeName(commonName: string): Buffer {
  const attribute = sequence(objectId(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from(commonName, 'utf8')))
  return sequence(tagged(0x31, attribute))
}

/** UTCTime: `yymmddhhmmssZ` */
function encodeTime(time: Date): Buffer {
  const digits = time.toISOString().replaceAll(/\D/g, '').slice(2, 14)
  return tagged(0x17, Buffer.from(`${digits}Z`, 'ascii'))
}

function tagged(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag]), encodeLength(content.length), content])
}

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  return length < 0x100 ? Buffer.from([0x81, length]) : Buffer.from([0x82, length >> 8, length & 0xff])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes)
}

function octetString(content: Buffer): Buffer {
  return tagged(0x04, content)
}

function bitString(content: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([0]), content]))
}

function objectId(...bytes: readonly number[]): Buffer {
  return tagged(0x06, Buffer.from(bytes))
}

/** ecdsa-with-SHA256 */
const signatureAlgorithm = sequence(objectId(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
