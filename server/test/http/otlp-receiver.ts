/** A collector: an HTTP server that keeps the spans that it receives over OTLP. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ReceivedSpan = Readonly<{
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number
  flags: number | undefined
  startedAt: bigint
  endedAt: bigint
  attributes: Readonly<Record<string, unknown>>
  links: readonly Readonly<{ traceId: string; spanId: string }>[]
  /** 0 unset, 2 error. */
  status: number
}>
export type Export = Readonly<{ path: string; headers: IncomingHttpHeaders; body: Buffer }>

export interface OtlpReceiver {
  readonly url: string
  readonly exports: readonly Export[]
  /** The attributes of the newest export's resource. */
  resource(): Readonly<Record<string, unknown>>
  spans(): readonly ReceivedSpan[]
  /** The answer to further exports. */
  answerWith(status: number): void
  /** Waits for a span that matches. */
  waitFor(name: string, matches?: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>
  close(): Promise<void>
}

export async function startOtlpReceiver(port = 0): Promise<OtlpReceiver> {
  const exports: Export[] = []
  let status = 200
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { url: path = '', headers } = request
      if (status === 200) exports.push({ path, headers, body: Buffer.concat(chunks) })
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const spans = () => exports.flatMap(({ body }) => readSpans(body))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exports,
    spans,
    resource: () => readResource(exports.at(-1)?.body),
    answerWith: (next) => {
      status = next
    },
    waitFor: async (name, matches = () => true) => {
      for (let attempt = 0; attempt < 400; attempt++) {
        const found = spans().find((span) => span.name === name && matches(span))
        if (found !== undefined) return found
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
      const names = spans().map((span) => span.name)
      throw new Error(`the collector received no span "${name}" within 10 s, but ${JSON.stringify(names)}`)
    },
    close: () => close(server),
  }
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

type OtlpValue = Readonly<Record<string, unknown>>
type OtlpAttribute = Readonly<{ key: string; value: OtlpValue }>
type OtlpSpan = Readonly<{
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  flags?: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: readonly OtlpAttribute[]
  links?: readonly Readonly<{ traceId: string; spanId: string }>[]
  status?: Readonly<{ code?: number }>
}>
type OtlpBody = Readonly<{
  resourceSpans: readonly Readonly<{
    resource: Readonly<{ attributes: readonly OtlpAttribute[] }>
    scopeSpans: readonly Readonly<{ scope: Readonly<{ name: string }>; spans: readonly OtlpSpan[] }>[]
  }>[]
}>

function parse(body: Buffer): OtlpBody {
  return JSON.parse(body.toString('utf8')) as OtlpBody
}

function readSpans(body: Buffer): ReceivedSpan[] {
  return parse(body).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        name: span.name,
        kind: span.kind,
        flags: span.flags,
        startedAt: BigInt(span.startTimeUnixNano),
        endedAt: BigInt(span.endTimeUnixNano),
        attributes: readAttributes(span.attributes),
        links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
        status: span.status?.code ?? 0,
      })),
    ),
  )
}

function readResource(body: Buffer | undefined): Readonly<Record<string, unknown>> {
  const [first] = body === undefined ? [] : parse(body).resourceSpans
  return readAttributes(first?.resource.attributes ?? [])
}

/** The value of each attribute, whatever its type. 64-bit integers are texts in the JSON of OTLP. */
function readAttributes(attributes: readonly OtlpAttribute[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
