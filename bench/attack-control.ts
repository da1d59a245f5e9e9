/**
 * A server that does nothing but answer. Its delays are those of the machine, so they are not counted as
 * delays of the attacked server. Prints its port.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((_request, answer) => answer.end('ok'))
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
// Ends with the benchmark, also if that is killed.
process.stdin.resume().once('end', () => process.exit())
