/** Requests within the documented limits that once ended the server or stopped it for others, or might. */
import { request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type Attack, capture, createQueue, get, importItems, once, post } from './attack-client.ts'
import { messageAttacks } from './attack-messages.ts'

async function findLetterId(url: string): Promise<string> {
  const page = await fetch(`${url}/api/v1/letters?limit=1`)
  const { letters } = (await page.json()) as { letters: readonly { id: string }[] }
  return String(letters[0]?.id)
}

const listAll = (url: string): Promise<string> =>
  post(`${url}/v1/storage/items.list`, { queue_name: 'attacked', limit: 65_536 })

/** One attack per way to send a body to a path. */
function postOnce(name: string, path: string, create: () => string | object): Attack {
  const body = once(create)
  return { name, prepare: (url) => createQueue(url), run: (url) => post(url + path, body()) }
}

const millionsOfIds = '1,'.repeat(15_000_000)
/** Nearly as many values as a body may have. */
const manyValues = `[${'{"a":1},'.repeat(380_000)}1]`
const emptyArrays = `[${'[],'.repeat(5_000_000)}[]]`
const manyObjects = `[${'{"a":[1,2,3]},'.repeat(700_000)}1]`

const bodyAttacks: readonly Attack[] = [
  postOnce(
    'discard of 15 million wrong ids',
    '/api/v1/letters/discard',
    () => `{"ids":[${millionsOfIds}1],"reason":"x"}`,
  ),
  postOnce('requeue of 15 million wrong ids', '/api/v1/dlq/requeue', () => `{"ids":[${millionsOfIds}1]}`),
  postOnce('discard of 300,000 wrong ids in 1 MB', '/api/v1/letters/discard', () => ({
    ids: Array(330_000).fill(1),
    reason: 'x',
  })),
  postOnce(
    'discard with 60,000 unknown fields',
    '/api/v1/letters/discard',
    () => `{${Array.from({ length: 60_000 }, (_, index) => `"field${index}":1`).join(',')}}`,
  ),
  postOnce(
    'capture of 19 million empty arrays',
    '/api/v1/letters',
    () => `{"queue":"attacked","letters":[{"original_value":[${'[],'.repeat(19_000_000)}[]]}]}`,
  ),
  postOnce(
    'capture of 30 million nested arrays',
    '/api/v1/letters',
    () =>
      `{"queue":"attacked","letters":[{"original_value":${'['.repeat(30_000_000)}${']'.repeat(30_000_000)}}]}`,
  ),
  postOnce(
    'capture of 10 million empty arrays in 30 MB',
    '/api/v1/letters',
    () => `{"queue":"attacked","letters":[{"original_value":[${'[],'.repeat(10_000_000)}[]]}]}`,
  ),
  postOnce(
    'capture of 15 million nested arrays in 30 MB',
    '/api/v1/letters',
    () =>
      `{"queue":"attacked","letters":[{"original_value":${'['.repeat(15_000_000)}${']'.repeat(15_000_000)}}]}`,
  ),
  postOnce(
    'capture of 1.1 million JSON values',
    '/api/v1/letters',
    () => `{"queue":"attacked","letters":[{"original_value":${manyValues}}]}`,
  ),
  postOnce(
    'capture of 1,000 letters with 30 MB',
    '/api/v1/letters',
    () =>
      `{"queue":"attacked","letters":[${Array(1_000)
        .fill(`{"original_value":"${'x'.repeat(30_000)}"}`)
        .join(',')}]}`,
  ),
  postOnce(
    'capture of 10,000 headers',
    '/api/v1/letters',
    () =>
      `{"queue":"attacked","letters":[${Array(1_000)
        .fill(`{"headers":{${Array.from({ length: 10 }, (_, index) => `"h${index}":"v"`).join(',')}}}`)
        .join(',')}]}`,
  ),
  postOnce('import of one 16 MiB item', '/v1/storage/items.import', () => ({
    queue_name: 'attacked',
    items: [{ payload: Buffer.alloc(16 * 2 ** 20).toString('base64') }],
  })),
  postOnce('import of 100,000 items', '/v1/storage/items.import', () => ({
    queue_name: 'attacked',
    items: Array(100_000).fill({ payload: 'eHg=', kind: 'k', reference: 'r', attempts: 1 }),
  })),
  postOnce('produce of 5 MB of empty items', '/v1/queue.produce', () => ({
    queue_name: 'attacked',
    request_timeout: '10s',
    items: Array(1_100_000).fill({}),
  })),
  postOnce('produce of one item of 3.7 MB', '/v1/queue.produce', () => ({
    queue_name: 'attacked',
    request_timeout: '10s',
    items: [{ bytes: Buffer.alloc(3_700_000).toString('base64') }],
  })),
  postOnce(
    'produce of 1.1 million JSON values over /api/v1',
    '/api/v1/queues/attacked/items',
    () => `{"items":[{"payload":{"json":${manyValues}}}]}`,
  ),
  postOnce('request_timeout of 4 million digits', '/v1/queue.produce', () => ({
    queue_name: 'attacked',
    request_timeout: `${'9'.repeat(4_000_000)}s`,
    items: [{}],
  })),
]

const readAttacks: readonly Attack[] = [
  {
    name: 'list of 65,536 items of 2,300 bytes',
    prepare: (url) => importItems(url, 65_536, 2_300, 8_192),
    run: listAll,
  },
  {
    name: 'list of 40 items of 3.7 MB',
    prepare: (url) => importItems(url, 40, 3_700_000, 4),
    run: listAll,
  },
  {
    name: 'first lease of 1,000 items of 1 MiB',
    prepare: (url) => importItems(url, 400, 2 ** 20, 20),
    run: (url) =>
      post(`${url}/v1/queue.lease`, {
        queue_name: 'attacked',
        client_id: `worker-${Math.random()}`,
        batch_size: 1_000,
        request_timeout: '10s',
      }),
  },
  {
    name: 'lease of items of 15 MiB',
    prepare: (url) => importItems(url, 30, 15 * 2 ** 20, 2),
    run: (url) =>
      post(`${url}/v1/queue.lease`, {
        queue_name: 'attacked',
        client_id: `worker-${Math.random()}`,
        batch_size: 1_000,
        request_timeout: '10s',
      }),
  },
  ...(['json', 'text', 'base64'] as const).map((form) => ({
    name: `letter of 5 million empty arrays as ${form}`,
    prepare: (url: string) => capture(url, 1, emptyArrays),
    run: async (url: string) => get(`${url}/api/v1/letters/${await findLetterId(url)}?payload_form=${form}`),
  })),
  {
    name: 'letter of 1.1 million JSON values as json',
    prepare: (url) => capture(url, 1, manyValues),
    run: async (url) => get(`${url}/api/v1/letters/${await findLetterId(url)}?payload_form=json`),
  },
  {
    name: 'messages of a topic with large JSON',
    prepare: (url) => capture(url, 12, manyValues),
    run: (url) => get(`${url}/api/v1/dlq/attacked-topic`),
  },
  {
    name: 'JSON-path search in six letters of 10 MB',
    prepare: (url) => capture(url, 6, manyObjects),
    run: (url) => get(`${url}/api/v1/letters?json=${encodeURIComponent('$.missing="x"')}`),
  },
  {
    name: 'JSON-path search in 60 letters of 1 MB',
    prepare: (url) => capture(url, 60, `[${'{"a":["x"]},'.repeat(80_000)}1]`),
    run: (url) => get(`${url}/api/v1/letters?json=${encodeURIComponent('$.missing="x"')}`),
  },
  {
    name: 'export of eight letters of 15 MB that is not read',
    prepare: (url) => capture(url, 8, 'x'.repeat(15_000_000)),
    run: (url) => readNothing(`${url}/api/v1/letters/export`),
  },
  {
    name: 'export of eight letters of 15 MB',
    prepare: (url) => capture(url, 8, 'x'.repeat(15_000_000)),
    run: (url) => get(`${url}/api/v1/letters/export`),
  },
  {
    name: 'five exports of letters of 15 MB that are not read',
    prepare: (url) => capture(url, 8, 'x'.repeat(15_000_000)),
    run: async (url) => {
      const answers = Array.from({ length: 5 }, () => readNothing(`${url}/api/v1/letters/export`))
      return (await Promise.all(answers)).join(' ')
    },
  },
  {
    name: 'list of one queue beside 300 queues of 10,000 partitions',
    prepare: async (url) => {
      for (let queue = 0; queue < 300; queue++) await createQueue(url, `wide-${queue}`, 10_000)
    },
    run: (url) => get(`${url}/api/v1/queues?limit=1`),
  },
  {
    name: 'metrics of 20,000 queues',
    prepare: async (url) => {
      const names = Array.from({ length: 20_000 }, (_, queue) => `queue-${queue}`)
      for (let from = 0; from < names.length; from += 100) {
        await Promise.all(names.slice(from, from + 100).map((name) => createQueue(url, name)))
      }
    },
    run: (url) => get(`${url}/metrics`),
  },
  {
    name: '1,000 idle connections',
    run: async (url) => {
      const { port } = new URL(url)
      const sockets = await Promise.all(
        Array.from({ length: 1_000 }, () => openConnection(Number(port)).catch(() => undefined)),
      )
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      for (const socket of sockets) socket?.destroy()
      return 'closed'
    },
  },
]

export const attacks: readonly Attack[] = [...bodyAttacks, ...readAttacks, ...messageAttacks]

function openConnection(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Begins a request and reads nothing of its answer for three seconds. */
function readNothing(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { agent: false }, (answer) => {
      answer.pause()
      setTimeout(() => {
        resolve(String(answer.statusCode))
        request.destroy()
      }, 3_000)
    })
    request.once('error', reject)
    request.end()
  })
}
