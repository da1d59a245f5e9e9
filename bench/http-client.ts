/**
 * Sends requests repeatedly over persistent connections, each after the answer to the previous one. It uses
 * plain sockets: a client that needs more CPU than the server would hide the cost of the server.
 *
 * `produce`: the same request each time. `lease and complete`: leases one item, then completes it.
 */
import { connect } from 'node:net'
import { payload } from './peers/peer.ts'
import { quantile } from './report.ts'

export type HttpOperation = 'produce' | 'lease and complete'
export type HttpLoad = Readonly<{
  url: string
  queue: string
  operation: HttpOperation
  connections: number
  seconds: number
}>
/** `perSecond`: items. A lease with its complete is two requests for one item. */
export type HttpFigures = Readonly<{ perSecond: number; p50Ms: number; p99Ms: number }>

const warmUpMs = 1_000
const headerEnd = '\r\n\r\n'

const { url, queue, operation, connections, seconds } = JSON.parse(process.argv[2] ?? '{}') as HttpLoad
const { hostname, port, host } = new URL(url)
const produceRequest = createRequest('produce', {
  queue_name: queue,
  request_timeout: '1m',
  items: [{ utf8: JSON.stringify(payload) }],
})
const times: number[] = []
let isCounting = false

for (let number = 0; number < connections; number++) {
  sendRepeatedly(operation === 'produce' ? createProduces() : createLeases(number))
}
setTimeout(() => {
  isCounting = true
  process.send?.('counting')
  const startedAt = performance.now()
  setTimeout(() => {
    const perSecond = times.length / ((performance.now() - startedAt) / 1000)
    times.sort((a, b) => a - b)
    const figures: HttpFigures = { perSecond, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) }
    process.send?.(figures, () => process.exit(0))
  }, seconds * 1000)
}, warmUpMs)

function createRequest(call: string, body: object): Buffer {
  const text = JSON.stringify(body)
  return Buffer.from(
    `POST /v1/queue.${call} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}${headerEnd}${text}`,
  )
}

/** Returns the next request, and whether it begins another item. */
type Requests = (answer: string) => Readonly<{ request: Buffer; isNext: boolean }>

function createProduces(): Requests {
  return () => ({ request: produceRequest, isNext: true })
}

function createLeases(number: number): Requests {
  const lease = createRequest('lease', {
    queue_name: queue,
    client_id: `client-${number}`,
    batch_size: 1,
    request_timeout: '30s',
  })
  let isLeased = false
  return (answer) => {
    isLeased = !isLeased
    if (isLeased) return { request: lease, isNext: true }
    const { items, partition = 0 } = JSON.parse(answer) as { items: { id: string }[]; partition?: number }
    const ids = items.map(({ id }) => id)
    const complete = { queue_name: queue, partition, request_timeout: '30s', ids }
    return { request: createRequest('complete', complete), isNext: false }
  }
}

function sendRepeatedly(next: Requests): void {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let answer = ''
  let startedAtMs = performance.now()
  const send = (body: string) => {
    const { request, isNext } = next(body)
    if (isNext) {
      if (isCounting && body !== '') times.push(performance.now() - startedAtMs)
      startedAtMs = performance.now()
    }
    answer = ''
    socket.write(request)
  }
  socket.setEncoding('latin1')
  socket.on('connect', () => send(''))
  socket.on('data', (text: string) => {
    answer += text
    const at = answer.indexOf(headerEnd)
    if (at < 0) return
    const length = Number(/^content-length: *(\d+)/im.exec(answer)?.[1])
    if (!answer.startsWith('HTTP/1.1 200 ') || Number.isNaN(length)) fail(answer)
    if (answer.length < at + headerEnd.length + length) return
    send(answer.slice(at + headerEnd.length))
  })
  socket.on('error', (error) => fail(String(error)))
  socket.on('close', () => fail('the server closed a connection'))
}

function fail(reason: string): never {
  console.error(`the HTTP client failed: ${reason}`)
  process.exit(1)
}
