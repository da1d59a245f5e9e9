/**
 * The result of one push to a consumer, as the failure history stores it and as the rules of this folder
 * read it. The sender (`drivers/webhook/push/`) creates it. It never throws for a receiver that misbehaves.
 */

/**
 * Why an attempt failed, by the layer that failed. `status`: the receiver answered, but neither with a 2xx
 * status nor with a redirect.
 */
export type PushErrorKind =
  | 'status'
  | 'redirect'
  | 'dns'
  | 'refused'
  | 'reset'
  | 'tls'
  | 'timeout'
  | 'forbidden-address'
  | 'protocol'
  | 'aborted'

/** The first bytes of the response body of an attempt. */
export type ResponseBody = Readonly<{
  /** At most `responseBytesMax`. */
  bytes: Uint8Array
  contentType: string | null
  /** The receiver sent more, or did not end its response in time. */
  isTruncated: boolean
}>

type AttemptFacts = Readonly<{
  latencyMs: number
  /** The address that was connected to, such as `203.0.113.7` or `2001:db8::7`; null: no connection. */
  address: string | null
}>

export type DeliveredAttempt = AttemptFacts &
  Readonly<{ isDelivered: true; status: number; response: ResponseBody; failure: null }>

export type FailedAttempt = AttemptFacts &
  Readonly<{
    isDelivered: false
    /** Null: no response arrived. */
    status: number | null
    response: ResponseBody | null
    failure: PushFailure
  }>

export type PushFailure = Readonly<{
  kind: PushErrorKind
  /** Groups failures: `HttpStatusError`, `ConnectionError`, `TimeoutError`, … */
  errorClass: string
  /** Groups failures: `http_503`, `ECONNREFUSED`, `CONNECT_TIMEOUT`, … */
  errorCode: string
  /** One English sentence for the failure history, without the body and without secrets. */
  message: string
  /** The header `Retry-After` as received; `parseRetryAfter` reads it. */
  retryAfter: string | null
}>

export type Attempt = DeliveredAttempt | FailedAttempt

export const responseBytesMax = 4096
