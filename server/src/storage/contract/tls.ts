/**
 * TLS to a store, with the parameters and the meaning of libpq: sslmode, sslrootcert, sslcert and sslkey.
 *
 * The parameters come from settings (`store.sslmode`), from the URL of the store (`?sslmode=`) or from
 * libpq's environment variables (`PGSSLMODE`), in this order of precedence.
 */
import { KnownError } from '../../errors.ts'

export const tlsModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
export type TlsMode = (typeof tlsModes)[number]

export const tlsParameterNames = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const
export type TlsParameterName = (typeof tlsParameterNames)[number]

/** `origin`: where the parameter is set, for messages. */
export type TlsParameter = Readonly<{ text: string; origin: string }>
export type TlsParameters = Readonly<Partial<Record<TlsParameterName, TlsParameter>>>

/** Certificates or a key in PEM format. They can change: read them again for every new connection. */
export type PemSource = Readonly<{
  /** Names the parameter and its reference, for messages. Never shows a key. */
  name: string
  read(): Promise<string>
}>

/** How connections to the store use TLS. */
export type TlsSource = Readonly<{
  mode: TlsMode
  /** The authorities that may sign the server's certificate. `system`: those of the operating system. */
  rootCertificates: PemSource | 'system' | undefined
  client: Readonly<{ certificate: PemSource; key: PemSource }> | undefined
  /** Reports that the certificates cannot be read again and the last known ones stay in use. */
  warn(sentence: string): void
}>

export type CreateTlsSourceOptions = Readonly<{
  /** Reads a reference: the text of a parameter that is neither a mode nor `system`. */
  readPem: (reference: string) => Promise<string>
  /** Formats a reference for messages. */
  showReference: (reference: string) => string
  warn: (sentence: string) => void
}>

const modeDefault = 'prefer'
/** The value of sslrootcert for the authorities that the operating system trusts. */
const systemRoots = 'system'

/** Returns the parameters in the URL, and for those that are not there the ones in the environment. */
export function readTlsParameters(url: URL, environment: NodeJS.ProcessEnv = process.env): TlsParameters {
  checkUrlParameters(url)
  const parameters: Partial<Record<TlsParameterName, TlsParameter>> = {}
  for (const name of tlsParameterNames) {
    const variable = `PG${name.toUpperCase()}`
    const inUrl = url.searchParams.get(name)
    const inEnvironment = environment[variable]
    if (inUrl) parameters[name] = { text: inUrl, origin: `${name} in the store URL` }
    else if (inEnvironment) parameters[name] = { text: inEnvironment, origin: variable }
  }
  return parameters
}

/** Returns the URL without its TLS parameters, which the driver would read in its own way. */
export function removeTlsParameters(url: URL): URL {
  const rest = new URL(url)
  for (const name of [...tlsParameterNames, 'sslnegotiation']) rest.searchParams.delete(name)
  return rest
}

/** Checks that the parameters fit together. */
export function createTlsSource(parameters: TlsParameters, options: CreateTlsSourceOptions): TlsSource {
  const { sslrootcert, sslcert, sslkey } = parameters
  const usesSystemRoots = sslrootcert?.text === systemRoots
  const mode = readMode(parameters.sslmode, usesSystemRoots ? 'verify-full' : modeDefault)
  if (usesSystemRoots && mode !== 'verify-full') {
    throw new KnownError(
      'SETTING_INVALID',
      `sslmode is ${mode} and sslrootcert is system: anyone can get a certificate from a public authority, so use sslmode verify-full`,
    )
  }
  if (mode.startsWith('verify') && sslrootcert === undefined) {
    throw new KnownError(
      'SETTING_INVALID',
      `sslmode is ${mode}, but sslrootcert is not set: set store.sslrootcert to the certificate of the authority that signed the server's certificate, or to system for the authorities that the operating system trusts`,
    )
  }
  if ((sslcert === undefined) !== (sslkey === undefined)) {
    const [given, missing] = sslcert === undefined ? [sslkey, 'sslcert'] : [sslcert, 'sslkey']
    throw new KnownError(
      'SETTING_INVALID',
      `${given?.origin} is set, but ${missing} is not: set store.${missing} as well, because a client certificate needs its key`,
    )
  }
  const toSource = ({ text, origin }: TlsParameter): PemSource => ({
    name: `${origin} (${options.showReference(text)})`,
    read: () => options.readPem(text),
  })
  return {
    mode,
    rootCertificates: usesSystemRoots ? systemRoots : sslrootcert && toSource(sslrootcert),
    client: sslcert && sslkey && { certificate: toSource(sslcert), key: toSource(sslkey) },
    warn: options.warn,
  }
}

function readMode(given: TlsParameter | undefined, byDefault: TlsMode): TlsMode {
  if (given === undefined) return byDefault
  const mode = tlsModes.find((each) => each === given.text)
  if (mode !== undefined) return mode
  throw new KnownError(
    'SETTING_INVALID',
    `${given.origin} is ${JSON.stringify(given.text)}: it must be one of ${tlsModes.join(', ')}`,
  )
}

/** Ignoring a parameter such as sslcrl would make a connection less secure than its URL states. */
function checkUrlParameters(url: URL): void {
  for (const [name, value] of url.searchParams) {
    const isKnown = (tlsParameterNames as readonly string[]).includes(name)
    const isRequested = /^(ssl|requiressl)/.test(name) && !(name === 'sslnegotiation' && value === 'postgres')
    if (isKnown || !isRequested) continue
    throw new KnownError(
      'STORE_URL_INVALID',
      `the store URL has the parameter ${name}, which Redrive does not support: use ${tlsParameterNames.join(', ')}`,
    )
  }
}
