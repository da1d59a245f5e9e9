/** The client of the attacks: sends requests, and creates what the requests read. */
import { request as httpRequest, type IncomingMessage } from 'node:http'

export type Attack = Readonly<{
  name: string
  /** Creates what the attack reads, before it is measured. */
  prepare?: (url: string) => Promise<void>
  /** Sends the request and returns its status. */
  run: (url: string) => Promise<string>
}>

export function get(url: string, headers?: Readonly<Record<string, string>>): Promise<string> {
  return send('GET', url, undefined, headers)
}

export function post(
  url: string,
  body: string | Buffer | object,
  headers?: Readonly<Record<string, string>>,
): Promise<string> {
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return send('POST', url, bytes, headers)
}

export function putForm(url: string, form: Readonly<Record<string, string>>): Promise<string> {
  const body = new URLSearchParams(form).toString()
  return send('PUT', url, body, { 'content-type': 'application/x-www-form-urlencoded' })
}

/** Resolves with the status once the whole answer was read. */
function send(
  method: string,
  url: string,
  body: string | Buffer | undefined,
  given: Readonly<Record<string, string>> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { ...(body !== undefined && { 'content-type': 'application/json' }), ...given }
    const request = httpRequest(url, { method, headers, agent: false }, (answer: IncomingMessage) => {
      answer.resume()
      answer.once('end', () => resolve(String(answer.statusCode)))
      answer.once('error', reject)
    })
    request.once('error', reject)
    request.end(body)
  })
}

/** The same bytes for all requests of an attack: the sender has no memory for twenty copies of 60 MB. */
export function once(create: () => string | object): () => Buffer {
  let bytes: Buffer | undefined
  return () => {
    if (bytes !== undefined) return bytes
    const body = create()
    bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    return bytes
  }
}

const timeouts = { lease_timeout: '1m', expire_timeout: '24h' }
export async function createQueue(url: string, name = 'attacked', partitions = 1): Promise<void> {
  await post(`${url}/v1/queues.create`, { queue_name: name, requested_partitions: partitions, ...timeouts })
}

export async function importItems(url: string, count: number, bytes: number, perCall: number): Promise<void> {
  await createQueue(url)
  const payload = Buffer.alloc(bytes, 'x').toString('base64')
  for (let done = 0; done < count; done += perCall) {
    const items = Array.from({ length: Math.min(perCall, count - done) }, () => ({ payload }))
    const status = await post(`${url}/v1/storage/items.import`, { queue_name: 'attacked', items })
    if (status !== '200') throw new Error(`the import of a preparation was answered with ${status}`)
  }
}

export async function capture(url: string, count: number, value: string): Promise<void> {
  await createQueue(url)
  for (let letter = 0; letter < count; letter++) {
    const letters = [{ original_value: value, original_topic: 'attacked-topic' }]
    const status = await post(`${url}/api/v1/letters`, { queue: 'attacked', letters })
    if (status !== '200') throw new Error(`the capture of a preparation was answered with ${status}`)
  }
}
