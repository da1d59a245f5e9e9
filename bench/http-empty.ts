/** A server that answers every request with `{"code":200}` and does nothing else. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'

const answer = '{"code":200}'

if (process.argv[2] === 'Fastify') {
  const app = fastify()
  app.post('/v1/queue.produce', async () => ({ code: 200 }))
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
} else {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      JSON.parse(Buffer.concat(parts).toString())
      response.setHeader('content-type', 'application/json')
      response.setHeader('content-length', answer.length)
      response.end(answer)
    })
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  })
}
