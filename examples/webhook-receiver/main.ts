/**
 * A receiver of webhooks that verifies each push before it trusts it, and processes it once:
 *
 *     WEBHOOK_SECRET=whsec_… PORT=9000 node main.ts
 */
import { createServer, type IncomingMessage } from 'node:http'
import { verifyWebhook, WebhookVerificationError } from '@redrive/client'

const { WEBHOOK_SECRET = '', PORT = '9000' } = process.env
if (WEBHOOK_SECRET === '') {
  console.error('WEBHOOK_SECRET is missing: GET /api/v1/webhooks/<channel>/<consumer>/secret shows it')
  process.exit(2)
}
// Two secrets, separated by a space, while the secret is rotated.
const secrets = WEBHOOK_SECRET.split(' ')
const bodyBytesMax = 16 * 2 ** 20

/** A push is repeated until it is answered with 2xx. A real receiver stores the ids with its data. */
const processed = new Set<string>()

/** Replace this with your own work. */
function processEvent(event: unknown): void {
  console.log(`processed ${JSON.stringify(event)}`)
}

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error: unknown) => {
      // Redrive tries again later, and keeps the job as a dead letter if that does not help.
      console.error(error)
      response.writeHead(500).end()
    },
  )
})

async function receive(request: IncomingMessage): Promise<number> {
  // The signature covers the bytes as they were sent: verify them before you parse them.
  const body = await readBody(request)
  if (body === undefined) return 413
  try {
    const { id } = await verifyWebhook(secrets, request.headers, body)
    if (processed.has(id)) return 204
    processEvent(JSON.parse(body.toString('utf8')))
    processed.add(id)
    return 204
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error
    console.error(`refused a push: ${error.problem}`)
    return 401
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  console.log(`listening on ${typeof address === 'object' ? address?.port : address}`)
})
process.once('SIGTERM', () => server.close())
