/**
 * Sends the same request repeatedly over persistent connections, each after the answer to the previous one.
 * It uses plain sockets: a client that needs more CPU than the server would hide the cost of the server.
 */
import { connect } from 'node:net'
import { quantile } from './report.ts'

export type HttpLoad = Readonly<{ url: string; body: string; connections: number; seconds: number }>
export type HttpFigures = Readonly<{ perSecond: number; p50Ms: number; p99Ms: number }>

const warmUpMs = 1_000
const headerEnd = '\r\n\r\n'

const { url, body, connections, seconds } = JSON.parse(process.argv[2] ?? '{}') as HttpLoad
const { hostname, port, host, pathname } = new URL(url)
const request = Buffer.from(
  `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}${headerEnd}${body}`,
)
const times: number[] = []
let isCounting = false

for (let count = 0; count < connections; count++) sendRepeatedly()
setTimeout(() => {
  isCounting = true
  const startedAt = performance.now()
  setTimeout(() => {
    const perSecond = times.length / ((performance.now() - startedAt) / 1000)
    times.sort((a, b) => a - b)
    const figures: HttpFigures = { perSecond, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) }
    process.send?.(figures, () => process.exit(0))
  }, seconds * 1000)
}, warmUpMs)

function sendRepeatedly(): void {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let answer = ''
  let sentAtMs = 0
  const send = () => {
    answer = ''
    sentAtMs = performance.now()
    socket.write(request)
  }
  socket.setEncoding('latin1')
  socket.on('connect', send)
  socket.on('data', (text: string) => {
    answer += text
    const at = answer.indexOf(headerEnd)
    if (at < 0) return
    const length = Number(/^content-length: *(\d+)/im.exec(answer)?.[1])
    if (!answer.startsWith('HTTP/1.1 200 ') || Number.isNaN(length)) fail(answer)
    if (answer.length < at + headerEnd.length + length) return
    if (isCounting) times.push(performance.now() - sentAtMs)
    send()
  })
  socket.on('error', (error) => fail(String(error)))
  socket.on('close', () => fail('the server closed a connection'))
}

function fail(reason: string): never {
  console.error(`the HTTP client failed: ${reason}`)
  process.exit(1)
}
