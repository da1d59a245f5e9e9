/** The signatures of a gateway that the settings ask for. */
import { parseGatewaySecret } from '../core/webhook/gateway-signature.ts'
import { KnownError } from '../errors.ts'
import type { Settings } from './settings/settings.ts'

/** Null: requests are not signed. Throws SETTING_INVALID without a usable secret. */
export function toGateway(settings: Settings) {
  if (settings['webhooks.gateway_auth'] === 'none') return null
  const secret = parseGatewaySecret(settings['webhooks.gateway_secret']?.reveal() ?? '')
  if (secret === undefined) {
    throw new KnownError(
      'SETTING_INVALID',
      'webhooks.gateway_auth is hmac, but webhooks.gateway_secret is not set or not base64',
    )
  }
  return {
    secret,
    toleranceSeconds: settings['webhooks.gateway_tolerance'] / 1_000,
    exemptPaths: settings['webhooks.gateway_exempt_paths'],
  }
}
