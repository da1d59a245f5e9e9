/** The headers of a Standard Webhooks signature. */
export type SignatureHeaders = Readonly<{
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}>
