/** A process with one HTTP server per consumer. It answers 200, and counts requests for the parent. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const count = Number(process.argv[2])
let received = 0
const ports = await Promise.all(
  Array.from(
    { length: count },
    () =>
      new Promise<number>((resolve) => {
        const server = createServer((request, response) => {
          request.resume().once('end', () => {
            received += 1
            response.end()
          })
        })
        server.keepAliveTimeout = 60_000
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
      }),
  ),
)
process.on('message', (message) => {
  if (message === 'reset') received = 0
  process.send?.({ received })
})
process.on('disconnect', () => process.exit(0))
process.send?.({ ports })
