/** Bounds on the resources that a single request or client can use. */
export type HttpLimits = Readonly<{
  bodyBytesMax: number
  headerBytesMax: number
  headersMax: number
  urlBytesMax: number
  /** Time to send the headers, from the first byte (or from connecting). */
  headersMsMax: number
  /** Time to send the whole request. Answers have no time limit: long polls wait for minutes. */
  requestMsMax: number
  keepAliveMs: number
  connectionsMax: number
}>

export type HttpSettings = Readonly<{
  'http.body_bytes_max': number
  'http.header_bytes_max': number
  'http.request_timeout': number
  'http.keep_alive_timeout': number
  'http.connections_max': number
}>

export function toHttpLimits(settings: HttpSettings): HttpLimits {
  const headerBytesMax = settings['http.header_bytes_max']
  const requestMsMax = settings['http.request_timeout']
  return {
    bodyBytesMax: settings['http.body_bytes_max'],
    headerBytesMax,
    headersMax: 100,
    // The request line counts towards the header bytes, so a longer URL could never arrive.
    urlBytesMax: Math.min(8 * 1_024, headerBytesMax),
    headersMsMax: Math.min(15_000, requestMsMax),
    requestMsMax,
    keepAliveMs: settings['http.keep_alive_timeout'],
    connectionsMax: settings['http.connections_max'],
  }
}
