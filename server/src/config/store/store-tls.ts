import { KnownError } from '../../errors.ts'
import {
  createTlsSource,
  readTlsParameters,
  type TlsParameterName,
  type TlsParameters,
  type TlsSource,
  tlsParameterNames,
} from '../../storage/contract/tls.ts'
import type { Notify } from '../notify.ts'
import { parsePemReference, showPemReference } from '../secrets/secret-reference.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Settings } from '../settings/settings.ts'

/** Returns how the settings and the URL say that connections use TLS. Undefined: they say nothing. */
export function chooseTls(
  url: URL,
  settings: Settings,
  secrets: Secrets,
  notify: Notify,
): TlsSource | undefined {
  const parameters = mergeParameters(url, settings)
  if (Object.keys(parameters).length === 0) return undefined
  return createTlsSource(parameters, {
    readPem: async (text) => (await secrets.read(parsePemReference(text))).reveal(),
    showReference: showPemReference,
    warn: (sentence) => notify('warn', sentence),
  })
}

function mergeParameters(url: URL, settings: Settings): TlsParameters {
  const merged: { -readonly [Name in TlsParameterName]?: TlsParameters[Name] } = readTlsParameters(url)
  for (const name of tlsParameterNames) {
    const setting = settings[`store.${name}`]
    if (setting === undefined) continue
    if (url.searchParams.has(name)) {
      throw new KnownError(
        'SETTING_INVALID',
        `${name} is set more than once: use only one of store.${name} and ${name} in the store URL`,
      )
    }
    merged[name] = { text: typeof setting === 'string' ? setting : setting.reveal(), origin: `store.${name}` }
  }
  return merged
}
