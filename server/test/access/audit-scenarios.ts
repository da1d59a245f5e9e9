/**
 * One successful call of each route that changes something an operator owns, for the test of the audit log. A
 * new route needs a scenario here, or a reason why it has no audit row.
 */

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
type Body = any

export interface ScenarioTools {
  /** A new name. */
  name(prefix: string): string
  /** Sends a request that must succeed, and returns its body. */
  call(method: string, path: string, body?: object): Promise<Body>
  /** Sends a form of the webhook API. */
  form(
    method: string,
    path: string,
    fields: Record<string, string>,
    headers?: Record<string, string>,
  ): Promise<Body>
  queue(more?: object): Promise<string>
  /** A dead queue with letters; each has a group of its own. */
  letters(count: number): Promise<Readonly<{ dead: string; ids: readonly string[] }>>
  /** The id of an alert that fires. */
  alert(): Promise<string>
  readLastModified(path: string): Promise<string>
}

/** `prepare` creates what the call needs, and returns the call. `reason`: if the request can give one. */
export type Scenario = Readonly<{
  route: string
  action: string
  reason?: string
  prepare(tools: ScenarioTools): Promise<ScenarioCall>
}>
export type ScenarioCall = Readonly<{
  path: string
  body?: object
  /** Instead of `body`. */
  form?: Record<string, string>
  headers?: Record<string, string>
}>

/** Changing routes that write no audit row, and why. */
export const withoutAudit: Readonly<Record<string, string>> = {
  'POST /v1/queue.produce': 'the work of a queue',
  'POST /v1/queue.lease': 'the work of a queue',
  'POST /v1/queue.complete': 'the work of a queue',
  'POST /v1/queue.retry': 'the work of a queue',
  'POST /v1/queue.reload': 'reads the queue again, and changes nothing in the store',
  'POST /api/v1/queues/{name}/items': 'the work of a queue',
  'POST /api/v1/letters': 'the work of programs whose messages failed',
  'POST /api/v1/queues/{name}/leases/extend': 'the work of a queue',
  'POST /api/v1/queues/{name}/leases/cancel': 'the work of a queue',
  'POST /channel/{channelId}/broadcast': 'the work of a channel',
  'POST /api/v1/workers/heartbeat': 'the work of workers',
  'POST /api/v1/webhooks/{channel}/{consumer}/test': 'sends a test message, and changes nothing',
  'POST /api/v1/alerts/channels/{name}/test': 'sends a test message, and changes nothing',
  'POST /channel/{channelId}/consumer/{consumerId}/job/{jobId}': 'the work of a pull consumer',
}

const reason = 'because of the test'
const user = async ({ call, name }: ScenarioTools) =>
  (await call('POST', '/v1/users.create', { username: name('user') })).id as string
const role = async ({ call, name }: ScenarioTools) => {
  const created = { namespace: '_system', name: name('role'), permissions: ['queue.list'] }
  await call('POST', '/v1/roles.create', created)
  return created
}
const binding = async (tools: ScenarioTools) => {
  const bound = { namespace: '_system', role_name: (await role(tools)).name, user_id: await user(tools) }
  await tools.call('POST', '/v1/rolebindings.create', bound)
  return bound
}
const namespace = async ({ call, name }: ScenarioTools) => {
  const created = name('space')
  await call('POST', '/v1/namespaces.create', { name: created })
  return created
}
const queueApiQueue = (name: string) => ({
  queue_name: name,
  requested_partitions: 1,
  lease_timeout: '1m',
  expire_timeout: '1h',
})
const groups = async (
  tools: ScenarioTools,
  count = 2,
): Promise<readonly { id: number; cause_id: string }[]> => {
  const { dead } = await tools.letters(count)
  return (await tools.call('GET', `/api/v1/groups?queue=${dead}`)).groups
}
const campaignSpec = async (tools: ScenarioTools) => {
  const { dead } = await tools.letters(2)
  return { name: 'a campaign', reason, action: 'discard', filter: { queue: dead }, rate_per_second: 0.001 }
}
const campaign = async (tools: ScenarioTools) =>
  (await tools.call('POST', '/api/v1/campaigns', { ...(await campaignSpec(tools)), canary_count: 0 }))
    .id as string
const consumer = async ({ form, name }: ScenarioTools) => {
  const channel = name('channel')
  await form('PUT', `/channel/${channel}`, { token: 't' })
  const fields = { token: 'k', callbackUrl: 'http://192.0.2.1/', type: 'push' }
  await form('PUT', `/channel/${channel}/consumer/one`, fields)
  return channel
}

const queueScenarios: readonly Scenario[] = [
  {
    route: 'POST /v1/queues.create',
    action: 'queue.create',
    prepare: async ({ name }) => ({ path: '/v1/queues.create', body: queueApiQueue(name('queue')) }),
  },
  {
    route: 'POST /v1/queues.update',
    action: 'queue.update',
    prepare: async ({ queue }) => ({
      path: '/v1/queues.update',
      body: { ...queueApiQueue(await queue()), max_attempts: 3 },
    }),
  },
  {
    route: 'POST /v1/queues.delete',
    action: 'queue.delete',
    prepare: async ({ queue }) => ({ path: '/v1/queues.delete', body: { queue_name: await queue() } }),
  },
  {
    route: 'POST /v1/queue.clear',
    action: 'queue.clear',
    prepare: async ({ queue, call }) => {
      const name = await queue()
      await call('POST', `/api/v1/queues/${name}/items`, { items: [{ payload: { text: 'x' } }] })
      return { path: '/v1/queue.clear', body: { queue_name: name, queue: true } }
    },
  },
  {
    route: 'POST /v1/storage/items.import',
    action: 'items.import',
    prepare: async ({ queue }) => ({
      path: '/v1/storage/items.import',
      body: { queue_name: await queue(), partition: 0, items: [{ payload: 'eA==' }] },
    }),
  },
  {
    route: 'POST /v1/storage/items.delete',
    action: 'items.delete',
    prepare: async ({ queue, call }) => {
      const name = await queue()
      const { ids } = await call('POST', `/api/v1/queues/${name}/items`, {
        items: [{ payload: { text: 'x' } }],
      })
      return { path: '/v1/storage/items.delete', body: { queue_name: name, partition: 0, ids } }
    },
  },
  {
    route: 'POST /api/v1/queues',
    action: 'queue.create',
    reason,
    prepare: async ({ name }) => ({ path: '/api/v1/queues', body: { name: name('queue') } }),
  },
  {
    route: 'PATCH /api/v1/queues/{name}',
    action: 'queue.update',
    reason,
    prepare: async ({ queue }) => ({
      path: `/api/v1/queues/${await queue()}`,
      body: { policy: { attempts_max: 3 } },
    }),
  },
  ...(['pause', 'resume'] as const).map(
    (verb): Scenario => ({
      route: `POST /api/v1/queues/{name}/${verb}`,
      action: 'queue.update',
      reason,
      prepare: async ({ queue }) => ({ path: `/api/v1/queues/${await queue()}/${verb}`, body: {} }),
    }),
  ),
  {
    route: 'DELETE /api/v1/queues/{name}',
    action: 'queue.delete',
    prepare: async ({ queue }) => ({ path: `/api/v1/queues/${await queue()}` }),
  },
  {
    route: 'PUT /api/v1/queues/{name}/redaction-rules',
    action: 'queue.update',
    reason,
    prepare: async ({ queue }) => ({
      path: `/api/v1/queues/${await queue()}/redaction-rules`,
      body: { rules: [{ header: 'x' }] },
    }),
  },
  {
    route: 'PUT /api/v1/queues/{name}/grouping-rules',
    action: 'queue.update',
    reason,
    prepare: async ({ queue }) => ({
      path: `/api/v1/queues/${await queue()}/grouping-rules`,
      body: { rules: [] },
    }),
  },
  {
    route: 'PUT /api/v1/namespaces/{name}/quota',
    action: 'namespace.set-quota',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/namespaces/${await namespace(tools)}/quota`,
      body: { queues_max: 1 },
    }),
  },
]

const accessScenarios: readonly Scenario[] = [
  {
    route: 'POST /v1/namespaces.create',
    action: 'namespace.create',
    prepare: async ({ name }) => ({ path: '/v1/namespaces.create', body: { name: name('space') } }),
  },
  {
    route: 'POST /v1/namespaces.update',
    action: 'namespace.update',
    prepare: async (tools) => ({
      path: '/v1/namespaces.update',
      body: { name: await namespace(tools), description: 'x' },
    }),
  },
  {
    route: 'POST /v1/namespaces.delete',
    action: 'namespace.delete',
    prepare: async (tools) => ({ path: '/v1/namespaces.delete', body: { name: await namespace(tools) } }),
  },
  {
    route: 'POST /v1/users.create',
    action: 'user.create',
    prepare: async ({ name }) => ({ path: '/v1/users.create', body: { username: name('user') } }),
  },
  {
    route: 'POST /v1/users.delete',
    action: 'user.delete',
    prepare: async (tools) => ({ path: '/v1/users.delete', body: { id: await user(tools) } }),
  },
  {
    route: 'POST /v1/apikeys.create',
    action: 'apikey.create',
    prepare: async (tools) => ({
      path: '/v1/apikeys.create',
      body: { user_id: await user(tools), name: 'x' },
    }),
  },
  {
    route: 'POST /v1/apikeys.delete',
    action: 'apikey.delete',
    prepare: async (tools) => {
      const { id } = await tools.call('POST', '/v1/apikeys.create', { user_id: await user(tools), name: 'x' })
      return { path: '/v1/apikeys.delete', body: { id } }
    },
  },
  {
    route: 'POST /v1/roles.create',
    action: 'role.create',
    prepare: async ({ name }) => ({
      path: '/v1/roles.create',
      body: { namespace: '_system', name: name('role'), permissions: ['queue.list'] },
    }),
  },
  {
    route: 'POST /v1/roles.update',
    action: 'role.update',
    prepare: async (tools) => ({
      path: '/v1/roles.update',
      body: { ...(await role(tools)), permissions: ['queue.stats'] },
    }),
  },
  {
    route: 'POST /v1/roles.delete',
    action: 'role.delete',
    prepare: async (tools) => {
      const { namespace: space, name } = await role(tools)
      return { path: '/v1/roles.delete', body: { namespace: space, name } }
    },
  },
  {
    route: 'POST /v1/rolebindings.create',
    action: 'rolebinding.create',
    prepare: async (tools) => ({
      path: '/v1/rolebindings.create',
      body: { namespace: '_system', role_name: (await role(tools)).name, user_id: await user(tools) },
    }),
  },
  {
    route: 'POST /v1/rolebindings.delete',
    action: 'rolebinding.delete',
    prepare: async (tools) => ({ path: '/v1/rolebindings.delete', body: await binding(tools) }),
  },
]

const letterScenarios: readonly Scenario[] = [
  {
    route: 'POST /api/v1/letters/redrive',
    action: 'letter.redrive',
    reason,
    prepare: async ({ letters, queue }) => ({
      path: '/api/v1/letters/redrive',
      body: { ids: (await letters(2)).ids, target: await queue() },
    }),
  },
  {
    route: 'POST /api/v1/letters/{id}/redrive',
    action: 'letter.redrive',
    reason,
    prepare: async ({ letters, queue }) => ({
      path: `/api/v1/letters/${(await letters(1)).ids[0]}/redrive`,
      body: { target: await queue() },
    }),
  },
  {
    route: 'POST /api/v1/letters/cancel-redrive',
    action: 'letter.cancel-redrive',
    reason,
    prepare: async ({ letters, queue, call }) => {
      const { ids } = await letters(1)
      await call('POST', '/api/v1/letters/redrive', { ids, target: await queue() })
      return { path: '/api/v1/letters/cancel-redrive', body: { ids } }
    },
  },
  {
    route: 'POST /api/v1/letters/discard',
    action: 'letter.discard',
    reason,
    prepare: async ({ letters }) => ({
      path: '/api/v1/letters/discard',
      body: { ids: (await letters(2)).ids },
    }),
  },
  ...['/api/v1/letters/restore', '/api/v1/archive/restore'].map(
    (path): Scenario => ({
      route: `POST ${path}`,
      action: 'letter.restore',
      reason,
      prepare: async ({ letters, call }) => {
        const { ids } = await letters(1)
        await call('POST', '/api/v1/letters/discard', { ids, reason: 'x' })
        return { path, body: { ids } }
      },
    }),
  ),
  {
    route: 'POST /api/v1/dlq/requeue',
    action: 'letter.redrive',
    prepare: async ({ letters, queue }) => {
      const { ids } = await letters(1)
      await queue({ name: 'orders' })
      return { path: '/api/v1/dlq/requeue', body: { ids } }
    },
  },
  {
    route: 'POST /api/v1/dlq/purge',
    action: 'letter.discard',
    prepare: async ({ letters }) => {
      const { ids } = await letters(1)
      return { path: '/api/v1/dlq/purge', body: { ids } }
    },
  },
  {
    route: 'POST /api/v1/dlq/messages/{id}/retry',
    action: 'letter.redrive',
    prepare: async ({ letters, queue }) => {
      await queue({ name: 'orders' })
      return { path: `/api/v1/dlq/messages/${(await letters(1)).ids[0]}/retry`, body: {} }
    },
  },
  {
    route: 'DELETE /api/v1/dlq/messages/{id}',
    action: 'letter.discard',
    prepare: async ({ letters }) => ({ path: `/api/v1/dlq/messages/${(await letters(1)).ids[0]}` }),
  },
  {
    route: 'POST /api/v1/dlq/{topic}/retry-all',
    action: 'campaign.create',
    prepare: async ({ letters }) => {
      await letters(1)
      return { path: '/api/v1/dlq/orders/retry-all', body: {} }
    },
  },
  {
    route: 'POST /api/v1/dlq/messages/retry-all',
    action: 'campaign.create',
    // Here `messages` is a topic.
    prepare: async ({ queue, call }) => {
      const letter = { original_topic: 'messages', original_value: 'x', error_details: { message: 'x' } }
      await call('POST', '/api/v1/letters', { queue: await queue(), letters: [letter] })
      return { path: '/api/v1/dlq/messages/retry-all', body: {} }
    },
  },
  {
    route: 'POST /internal/v1/dlq/replay',
    action: 'letter.redrive',
    reason,
    prepare: async ({ letters, queue }) => {
      await queue({ name: 'orders' })
      return { path: '/internal/v1/dlq/replay', body: { id: (await letters(1)).ids[0] } }
    },
  },
  {
    route: 'POST /internal/v1/dlq/replay-all',
    action: 'campaign.create',
    prepare: async ({ letters }) => ({
      path: `/internal/v1/dlq/replay-all?topic=${(await letters(1)).dead}`,
      body: {},
    }),
  },
]

const aChannel = { kind: 'slack', settings: { url: 'https://hooks.slack.com/services/T0' } }
const alertChannelScenarios: readonly Scenario[] = [
  {
    route: 'PUT /api/v1/alerts/channels/{name}',
    action: 'alert-channel.create',
    reason,
    prepare: async ({ name }) => ({
      path: `/api/v1/alerts/channels/${name('channel')}`,
      body: aChannel,
    }),
  },
  {
    route: 'DELETE /api/v1/alerts/channels/{name}',
    action: 'alert-channel.delete',
    reason,
    prepare: async ({ name, call }) => {
      const path = `/api/v1/alerts/channels/${name('channel')}`
      await call('PUT', path, aChannel)
      return { path, body: {} }
    },
  },
]

const aRule = { condition: { type: 'count-drift' } }
const alertScenarios: readonly Scenario[] = [
  ...(['acknowledge', 'resolve', 'mute'] as const).map(
    (verb): Scenario => ({
      route: `POST /api/v1/alerts/{id}/${verb}`,
      action: `alert.${verb}`,
      reason,
      prepare: async ({ alert }) => ({
        path: `/api/v1/alerts/${await alert()}/${verb}`,
        body: verb === 'mute' ? { until: '2099-01-01T00:00:00Z' } : {},
      }),
    }),
  ),
  {
    route: 'PUT /api/v1/alerts/rules/{name}',
    action: 'alert-rule.create',
    reason,
    prepare: async ({ name }) => ({ path: `/api/v1/alerts/rules/${name('rule')}`, body: aRule }),
  },
  {
    route: 'DELETE /api/v1/alerts/rules/{name}',
    action: 'alert-rule.delete',
    reason,
    prepare: async ({ name, call }) => {
      const path = `/api/v1/alerts/rules/${name('rule')}`
      await call('PUT', path, aRule)
      return { path, body: {} }
    },
  },
]

const groupScenarios: readonly Scenario[] = [
  {
    route: 'PATCH /api/v1/groups/{id}',
    action: 'group.pin-title',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/groups/${(await groups(tools))[0]?.id}`,
      body: { title: 'x' },
    }),
  },
  {
    route: 'POST /api/v1/groups/{id}/merge',
    action: 'group.merge',
    reason,
    prepare: async (tools) => {
      const [into, other] = await groups(tools)
      return { path: `/api/v1/groups/${into?.id}/merge`, body: { group_ids: [other?.id] } }
    },
  },
  {
    route: 'PATCH /api/v1/causes/{id}',
    action: 'cause.pin-title',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/causes/${(await groups(tools))[0]?.cause_id}`,
      body: { title: 'x' },
    }),
  },
  {
    route: 'POST /api/v1/causes/{id}/merge',
    action: 'cause.merge',
    reason,
    prepare: async (tools) => {
      const [into, other] = await groups(tools)
      return { path: `/api/v1/causes/${into?.cause_id}/merge`, body: { cause_ids: [other?.cause_id] } }
    },
  },
  ...(['acknowledge', 'resolve', 'reopen', 'mute'] as const).map(
    (verb): Scenario => ({
      route: `POST /api/v1/groups/{id}/${verb}`,
      action: `group.${verb}`,
      reason,
      prepare: async (tools) => {
        const [group] = await groups(tools)
        const path = `/api/v1/groups/${group?.id}`
        if (verb === 'reopen') await tools.call('POST', `${path}/acknowledge`, {})
        return { path: `${path}/${verb}`, body: verb === 'mute' ? { until: '2099-01-01T00:00:00Z' } : {} }
      },
    }),
  ),
  {
    route: 'POST /api/v1/queues/{name}/regroup',
    action: 'group.regroup',
    reason,
    prepare: async ({ letters }) => ({ path: `/api/v1/queues/${(await letters(1)).dead}/regroup`, body: {} }),
  },
  {
    route: 'POST /api/v1/groups/{id}/split',
    action: 'group.split',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/groups/${(await groups(tools))[0]?.id}/split`,
      body: { filter: { retry_count_min: 1 }, title: 'x' },
    }),
  },
  {
    route: 'POST /api/v1/group-jobs/{id}/cancel',
    action: 'group.cancel-job',
    reason,
    prepare: async ({ letters, call }) => {
      const job = await call('POST', `/api/v1/queues/${(await letters(1)).dead}/regroup`, {})
      return { path: `/api/v1/group-jobs/${job.id}/cancel`, body: {} }
    },
  },
]

const campaignScenarios: readonly Scenario[] = [
  {
    route: 'POST /api/v1/campaigns',
    action: 'campaign.create',
    reason,
    prepare: async (tools) => ({ path: '/api/v1/campaigns', body: await campaignSpec(tools) }),
  },
  {
    route: 'PATCH /api/v1/campaigns/{id}',
    action: 'campaign.adjust',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/campaigns/${await campaign(tools)}`,
      body: { rate_per_second: 0.002 },
    }),
  },
  ...(['pause', 'resume', 'cancel'] as const).map(
    (verb): Scenario => ({
      route: `POST /api/v1/campaigns/{id}/${verb}`,
      action: `campaign.${verb}`,
      reason,
      prepare: async (tools) => {
        const path = `/api/v1/campaigns/${await campaign(tools)}`
        if (verb === 'resume') await tools.call('POST', `${path}/pause`, {})
        return { path: `${path}/${verb}`, body: {} }
      },
    }),
  ),
]

const webhookScenarios: readonly Scenario[] = [
  {
    route: 'PATCH /api/v1/webhooks/{channel}/{consumer}',
    action: 'webhook.consumer.update',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/webhooks/${await consumer(tools)}/one`,
      body: { settings: { parallel_max: 2 } },
    }),
  },
  ...(['pause', 'resume', 'enable'] as const).map(
    (verb): Scenario => ({
      route: `POST /api/v1/webhooks/{channel}/{consumer}/${verb}`,
      action: `webhook.consumer.${verb}`,
      reason,
      prepare: async (tools) => {
        const path = `/api/v1/webhooks/${await consumer(tools)}/one`
        if (verb === 'resume') await tools.call('POST', `${path}/pause`, {})
        return { path: `${path}/${verb}`, body: {} }
      },
    }),
  ),
  {
    route: 'POST /api/v1/webhooks/{channel}/{consumer}/secret/rotate',
    action: 'webhook.secret.rotate',
    reason,
    prepare: async (tools) => ({
      path: `/api/v1/webhooks/${await consumer(tools)}/one/secret/rotate`,
      body: {},
    }),
  },
  {
    route: 'PUT /producer/{producerId}',
    action: 'producer.put',
    prepare: async ({ name }) => ({ path: `/producer/${name('producer')}`, form: { token: 't' } }),
  },
  {
    route: 'PUT /channel/{channelId}',
    action: 'channel.put',
    prepare: async ({ name }) => ({ path: `/channel/${name('channel')}`, form: { token: 't' } }),
  },
  {
    route: 'PUT /channel/{channelId}/consumer/{consumerId}',
    action: 'consumer.put',
    prepare: async (tools) => ({
      path: `/channel/${await consumer(tools)}/consumer/two`,
      form: { token: 'k', callbackUrl: 'http://192.0.2.1/' },
    }),
  },
  {
    route: 'DELETE /channel/{channelId}/consumer/{consumerId}',
    action: 'consumer.delete',
    prepare: async (tools) => {
      const path = `/channel/${await consumer(tools)}/consumer/one`
      return { path, headers: { 'if-unmodified-since': await tools.readLastModified(path) } }
    },
  },
]

const workerScenarios: readonly Scenario[] = [
  {
    route: 'DELETE /api/v1/workers/{type}/{instance_id}',
    action: 'worker.forget',
    reason,
    prepare: async ({ call, name }) => {
      const instance = name('worker')
      const heartbeats = [{ type: 'mailer', instance_id: instance }]
      await call('POST', '/api/v1/workers/heartbeat', { heartbeats })
      return { path: `/api/v1/workers/mailer/${instance}`, body: {} }
    },
  },
]

export const scenarios: readonly Scenario[] = [
  ...queueScenarios,
  ...accessScenarios,
  ...letterScenarios,
  ...groupScenarios,
  ...alertChannelScenarios,
  ...alertScenarios,
  ...campaignScenarios,
  ...webhookScenarios,
  ...workerScenarios,
]
