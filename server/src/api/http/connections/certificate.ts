import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { KnownError } from '../../../errors.ts'

/** The paths of the certificate (with its chain) and of its key. */
export type CertificateFiles = Readonly<{ certPath: string; keyPath: string }>
export type Certificate = Readonly<{ cert: Buffer; key: Buffer }>

/** Rejects with TLS_FILES_INVALID if the files cannot be used together. */
export async function readCertificate({ certPath, keyPath }: CertificateFiles): Promise<Certificate> {
  const [cert, key] = await Promise.all([readPem(certPath), readPem(keyPath)])
  try {
    // Also checks that the key belongs to the certificate.
    createSecureContext({ cert, key })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new KnownError(
      'TLS_FILES_INVALID',
      `the certificate ${certPath} cannot be used with the key ${keyPath}: ${reason}`,
      error,
    )
  }
  return { cert, key }
}

async function readPem(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    throw new KnownError('TLS_FILES_INVALID', `the file ${path} cannot be read`, error)
  }
}

export type CertificateWatch = Readonly<{
  /** Loads the files again if their content has changed. Rejects and changes nothing if they are invalid. */
  pass(): Promise<void>
}>

/**
 * Compares contents and not times, so that a file that is replaced through a link, as Kubernetes does, is
 * noticed. New connections use the new certificate; open ones continue.
 */
export function createCertificateWatch(
  files: CertificateFiles,
  first: Certificate,
  onChanged: (certificate: Certificate) => void,
): CertificateWatch {
  let current = digest(first)
  return {
    pass: async () => {
      const read = await readCertificate(files)
      const found = digest(read)
      if (found === current) return
      onChanged(read)
      current = found
    },
  }
}

function digest({ cert, key }: Certificate): string {
  return createHash('sha256').update(cert).update('\0').update(key).digest('hex')
}
