/**
 * Sends the same request over kept connections, the next one when the last one is answered. Written on
 * bare sockets: a client that costs more than the server would hide what the server costs.
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

for (let count = 0; count < connections; count++) keepAsking()
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

function keepAsking(): void {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let answer = ''
  let askedAt = 0
  const ask = () => {
    answer = ''
    askedAt = performance.now()
    socket.write(request)
  }
  socket.setEncoding('latin1')
  socket.on('connect', ask)
  socket.on('data', (text: string) => {
    answer += text
    const at = answer.indexOf(headerEnd)
    if (at < 0) return
    const length = Number(/^content-length: *(\d+)/im.exec(answer)?.[1])
    if (!answer.startsWith('HTTP/1.1 200 ') || Number.isNaN(length)) fail(answer)
    if (answer.length < at + headerEnd.length + length) return
    if (isCounting) times.push(performance.now() - askedAt)
    ask()
  })
  socket.on('error', (error) => fail(String(error)))
  socket.on('close', () => fail('the server closed a connection'))
}

function fail(why: string): never {
  console.error(`the HTTP client got: ${why}`)
  process.exit(1)
}
