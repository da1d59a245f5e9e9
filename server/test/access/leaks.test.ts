/**
 * Secrets in every place where a store keeps texts of messages and of receivers. A Viewer calls every route
 * that reads, with real names and ids, and gets none of them; an administrator gets each of them somewhere,
 * so the test would notice a place that it does not reach.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isReadPermission } from '../../src/api/http/permission.ts'
import type { Route } from '../../src/api/http/route.ts'
import { routes } from '../../src/api/routes.ts'
import { type OtlpReceiver, startOtlpReceiver } from '../http/otlp-receiver.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import { bearer, describeKeysServer } from './keys-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
type Answer = any

const secrets = [
  'leakpayload',
  'leakkey',
  'leakauthorization',
  'leakcustomer',
  'leakcard',
  'leakedit',
  'leakfilter',
  'leakmessage',
  'leakmetadata',
  'leakanswer',
  'leaktoken',
  'leakurl',
] as const

const otlp: OtlpReceiver = await startOtlpReceiver()
const receiver: Receiver = await startReceiver((push, response) => {
  response.statusCode = push.body.includes('fail') ? 410 : 200
  response.end('leakanswer')
})
afterAll(async () => {
  await otlp.close()
  await receiver.close()
})

const settings = {
  'webhooks.loopback_allowed': true,
  'tracing.otlp_endpoint': otlp.url,
  'tracing.sample_ratio': 1,
  'tracing.export_interval': 50,
} as const

/** Routes whose answer does not end. */
const isEndless = ({ path }: Route): boolean => /\/events$/.test(path)

const isRead = ({ method, permission, path }: Route): boolean =>
  permission !== 'public' && (method === 'GET' || isReadPermission(permission) || path.endsWith('preview'))

describe.each(['SQLite memory', 'PostgreSQL'] as const)('%s', (store) => {
  describeKeysServer('secrets', store, settings, (server) => {
    const names: Record<string, string> = {}
    let viewer = ''
    const tokens = {
      'x-broker-channel-token': 'leaktoken-channel',
      'x-broker-consumer-token': 'leaktoken-consumer',
      'x-broker-producer-id': 'p',
      'x-broker-producer-token': 'leaktoken-producer',
    }

    const call = async (method: string, path: string, body?: object) => {
      const answer = await server.request(method, path, body, bearer(server.adminKey))
      expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBe(200)
      return answer.body
    }
    const sendForm = async (path: string, fields: Record<string, string>) => {
      const response = await fetch(server.url + path, {
        method: 'PUT',
        headers: bearer(server.adminKey),
        body: new URLSearchParams(fields),
      })
      expect(response.status, `${path}: ${await response.text()}`).toBeLessThan(300)
    }
    const broadcast = async (channel: string, id: string, body: string) => {
      const response = await fetch(`${server.url}/channel/${channel}/broadcast`, {
        method: 'POST',
        headers: {
          ...bearer(server.adminKey),
          ...tokens,
          'content-type': 'text/plain',
          'x-broker-message-id': id,
          'x-broker-metadata-headers': 'X-Session',
          'x-session': 'leakmetadata',
        },
        body,
      })
      expect(response.status, await response.text()).toBe(201)
    }

    async function fillLetters(): Promise<void> {
      await call('POST', '/api/v1/queues', { name: 'work' })
      await call('POST', '/api/v1/queues', { name: 'dead' })
      await call('POST', '/api/v1/queues/work/items', {
        items: [{ payload: { text: 'leakpayload' }, key: { text: 'leakkey' } }],
      })
      await call('PUT', '/api/v1/queues/dead/redaction-rules', {
        // Written so that the rule itself has none of the secrets.
        rules: [{ pattern: 'l[e]akc[a-z]+' }],
        is_content_shown: false,
      })
      const letter = (offset: number) => ({
        original_topic: 'work',
        original_partition: 0,
        original_offset: offset,
        original_value: 'leakpayload',
        original_key: 'leakkey',
        headers: { authorization: 'leakauthorization', 'x-customer': 'leakcustomer' },
        error_details: { exception_class: 'Failure', message: 'no leakcard', stack_trace: 'at leakcard' },
        source_id: `source-${offset}`,
      })
      const captured = await call('POST', '/api/v1/letters', {
        queue: 'dead',
        letters: [0, 1, 2, 3].map(letter),
      })
      const [edited, discarded] = captured.letters.map(({ id }: { id: string }) => id)
      const edit = { payload: { text: 'leakedit' } }
      await call('POST', `/api/v1/letters/${edited}/redrive`, { target: 'work', edit, reason: 'r' })
      await call('POST', '/api/v1/letters/discard', { ids: [discarded], reason: 'r' })
      names.letter = edited
      const { groups } = await call('GET', '/api/v1/groups?queue=dead')
      names.group = String(groups[0].id)
      names.cause = groups[0].cause_id
      const filter = {
        queue: 'dead',
        payload_contains: 'leakfilter',
        message: 'leakcard',
        header: 'x-a=leakfilter',
      }
      const spec = { name: 'n', reason: 'r', action: 'discard', filter }
      const campaign = await call('POST', '/api/v1/campaigns', spec)
      names.campaign = campaign.id
      const job = await call('POST', `/api/v1/groups/${names.group}/split`, {
        filter: { payload_contains: 'leakfilter', json: '$.a="leakfilter"' },
        title: 'split',
        reason: 'r',
      })
      names.job = job.id
    }

    async function fillWebhooks(): Promise<void> {
      await sendForm('/producer/p', { token: 'leaktoken-producer' })
      await sendForm('/channel/c', { token: 'leaktoken-channel' })
      const consumer = { token: 'leaktoken-consumer', callbackUrl: `${receiver.url}/leakurl?k=leakurl` }
      await sendForm('/channel/c/consumer/k', { ...consumer, type: 'push' })
      await sendForm('/channel/d', { token: 'leaktoken-channel' })
      await sendForm('/channel/d/consumer/k', { ...consumer, type: 'pull' })
      await broadcast('c', 'm', 'leakmessage')
      await broadcast('c', 'failing', 'leakmessage fail')
      await broadcast('d', 'm', 'leakmessage')
      const path = `${server.url}/channel/c/consumer/k/dlq`
      const read = async (): Promise<Answer> =>
        (await fetch(path, { headers: bearer(server.adminKey) })).json() as Answer
      const { DeadJobs } = await pollUntil(read, ({ DeadJobs: found }) => found.length === 1)
      const queued = `${server.url}/channel/d/consumer/k/queued-jobs`
      const headers = { ...bearer(server.adminKey), ...tokens }
      const { Result } = await pollUntil(
        async (): Promise<Answer> => (await fetch(queued, { headers })).json() as Answer,
        ({ Result: found }) => found.length === 1,
      )
      names.pullJob = Result[0].ID
      names.deadJob = DeadJobs[0].JobRequeueURL.split('/').at(-2)
    }

    type Request = Readonly<{ method: string; path: string; body?: object }>

    /** Every route that reads, with the names and ids of what exists. */
    const listRequests = (): readonly Request[] =>
      routes
        .filter((row) => isRead(row) && !isEndless(row))
        .flatMap((row) => fillPath(row.path).flatMap((path) => createRequests(row, path)))

    const createRequests = (row: Route, path: string): readonly Request[] => {
      const { method } = row
      if (method === 'GET') return [{ method, path }]
      return ['work', 'dead'].map((queue) => ({ method, path, body: createBody(row, queue, { queue }) }))
    }

    const createBody = (row: Route, queue_name: string, filter: object): object => {
      if (row.path.endsWith('campaigns/preview')) return { action: 'discard', filter }
      if (row.path.endsWith('grouping-rules/preview')) return { rules: [] }
      return row.path.startsWith('/v1/queues.list') ? {} : { queue_name }
    }

    const fillPath = (path: string): readonly string[] => {
      if (path.startsWith('/channel')) return fillChannelPath(path)
      if (path.includes('/webhooks/'))
        return ['m', 'failing'].map((message) => replace(path, { channel: 'c', consumer: 'k', message }))
      const id = findId(path)
      const filled = ['dead', 'work'].map((queue) =>
        replace(path, { id, name: queue, topic: queue, offset: '0', producerId: 'p' }),
      )
      const queries = extraQueries[path] ?? []
      return [...new Set([...filled, ...queries.map((query) => `${path}?${query}`)])]
    }

    const extraQueries: Readonly<Record<string, readonly string[]>> = {
      '/api/v1/letters': ['payload_form=text', 'limit=100'],
      '/internal/v1/dlq': ['topic=dead'],
    }

    const findId = (path: string): string => {
      const kinds = { campaigns: 'campaign', 'group-jobs': 'job', groups: 'group', causes: 'cause' }
      const [, name = 'letter'] = Object.entries(kinds).find(([part]) => path.includes(`/${part}`)) ?? []
      return encodeURIComponent(names[name] ?? '')
    }

    const fillChannelPath = (path: string): readonly string[] => {
      const all = ['c', 'd'].flatMap((channelId) =>
        ['m', 'failing'].flatMap((messageId) =>
          [names.pullJob, names.deadJob].map((jobId = '') =>
            replace(path, { channelId, consumerId: 'k', messageId, jobId }),
          ),
        ),
      )
      return [...new Set(all)]
    }

    const replace = (path: string, values: Readonly<Record<string, string>>): string =>
      path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)

    const readAll = async (key: string): Promise<readonly string[]> => {
      const answers: string[] = []
      for (const { method, path, body } of listRequests()) {
        const response = await fetch(server.url + path, {
          method,
          headers: {
            ...bearer(key),
            ...tokens,
            ...(body !== undefined && { 'content-type': 'application/json' }),
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(20_000),
        })
        answers.push(`${method} ${path} ${response.status}: ${await response.text()}`)
      }
      for (const path of ['/metrics', '/health', '/openapi.json'])
        answers.push(`GET ${path}: ${await (await fetch(server.url + path)).text()}`)
      const aborting = new AbortController()
      const events = await fetch(`${server.url}/api/v1/campaigns/${names.campaign}/events`, {
        headers: bearer(key),
        signal: aborting.signal,
      })
      const first = await pollEvents(events)
      aborting.abort()
      answers.push(`GET events: ${first}`)
      return answers
    }

    /** The events until the first one with data. */
    async function pollEvents(response: Response): Promise<string> {
      let text = ''
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array)
        if (text.includes('data:') || response.status !== 200) break
      }
      return text
    }

    beforeAll(async () => {
      await fillLetters()
      await fillWebhooks()
      viewer = (await server.createKey({ roles: ['Viewer'] })).key
    })

    it('a Viewer finds none of them in any answer', async () => {
      const found = (await readAll(viewer)).filter((answer) => /leak(?!token-)/.test(removeOwn(answer)))
      expect(found.map((answer) => answer.slice(0, 2_000))).toEqual([])
    })

    /** The answer without what the request itself had in its path. */
    const removeOwn = (answer: string): string =>
      answer.replace(/^\S+ \S+/, '').replaceAll('leaktoken-', 'leak:')

    it('an administrator finds each of them, so the test reaches their places', async () => {
      const all = (await readAll(server.adminKey)).join('\n')
      expect(secrets.filter((secret) => !all.includes(secret))).toEqual([])
    })

    it('no line of the log, no span and no metric has one of them', async () => {
      const logged = server.lines.map((line) => JSON.stringify(line)).filter((line) => /leak/.test(line))
      expect(logged).toEqual([])
      expect(otlp.exports.length).toBeGreaterThan(0)
      const spans = otlp.exports.filter(({ body }) => body.includes('leak'))
      expect(spans.map(({ body }) => body.toString('latin1'))).toEqual([])
    })

    it('a Viewer cannot find out what is hidden by selecting with it', async () => {
      for (const query of [
        'payload_contains=leakpayload',
        'message=leakcard',
        'key_text=leakkey',
        'header=x-customer=leakcustomer',
      ]) {
        const answer = await server.request(
          'GET',
          `/api/v1/letters?queue=dead&${query}`,
          undefined,
          bearer(viewer),
        )
        expect([query, answer.status]).toEqual([query, 403])
      }
      const { key } = await server.createKey({ roles: ['Viewer'] })
      const splitter = await server.createKey({ roles: ['Viewer'] })
      await server.admin('/v1/roles.create', {
        namespace: '_system',
        name: 'Grouper',
        permissions: ['group.write', 'letter.read'],
      })
      await server.admin('/v1/rolebindings.create', {
        namespace: '_system',
        role_name: 'Grouper',
        user_id: splitter.userId,
      })
      const split = await server.request(
        'POST',
        `/api/v1/groups/${names.group}/split`,
        { filter: { payload_contains: 'leakpayload' }, reason: 'r' },
        bearer(splitter.key),
      )
      expect(split.status, JSON.stringify(split.body)).toBe(403)
      expect(key).not.toBe('')
    })
  })
})
