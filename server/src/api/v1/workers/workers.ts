/** The list of workers, and what is wrong with workers and consumer groups. */
import { type Static, Type } from 'typebox'
import { systemNamespace } from '../../../core/items/queue.ts'
import { nameWorker } from '../../../core/watching/findings.ts'
import { type Worker, type WorkerKey, workerStates } from '../../../core/watching/worker.ts'
import { KnownError } from '../../../errors.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { requirePermission } from '../../http/caller.ts'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { time } from '../values/schemas.ts'
import { InstanceId, WorkerType } from './heartbeat.ts'
import { FindingView, viewFinding, viewWorker, WorkerView } from './worker-view.ts'

const list = 'workers'
const Namespace = Type.Optional(
  Type.String({ minLength: 1, maxLength: 256, description: 'The namespace. Default _system.' }),
)
const WorkerParams = Type.Object({ type: WorkerType, instance_id: InstanceId })

export const workerRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/workers',
    operationId: 'listWorkers',
    permission: 'worker.read',
    summary: 'Lists workers by namespace, type and instance, with their state.',
    tag: 'workers',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          namespace: Type.Optional(
            Type.String({ minLength: 1, maxLength: 256, description: 'Only workers of this namespace.' }),
          ),
          type: Type.Optional(WorkerType),
          state: Type.Optional(Type.Enum(workerStates, { description: 'Only workers in this state.' })),
        },
        { default: 100, max: 1_000 },
      ),
      response: {
        200: Type.Object({
          workers: Type.Array(WorkerView, { description: 'The workers of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query }, _reply, context) => {
      const after = query.cursor === undefined ? undefined : readPosition(query.cursor)
      const { shown, last } = await collectPage(query, after, context)
      return {
        workers: shown,
        next_cursor: last === null ? null : writeCursor(list, [last.namespace, last.type, last.instanceId]),
      }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/workers/findings',
    operationId: 'listFindings',
    permission: 'worker.read',
    summary: 'Lists the problems of workers and consumer groups now, the worst first.',
    tag: 'workers',
    dialect: v1,
    schema: {
      response: {
        200: Type.Object({
          read_at: time('When the rules were checked.'),
          findings: Type.Array(FindingView, { description: 'The problems, at most 1,000.' }),
        }),
      },
    },
    handler: async ({ caller }, _reply, { watching, clock }) => {
      const scope = caller.listNamespaces('worker.read')
      const findings = await watching.readFindings()
      const visible = findings.filter(({ namespace }) => scope === null || scope.includes(namespace))
      const readAt = watching.peekReport()?.at ?? clock.now()
      return { read_at: formatInstant(readAt), findings: visible.map(viewFinding) }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/workers/{type}/{instance_id}',
    operationId: 'getWorker',
    errors: ['WORKER_NOT_FOUND'],
    permission: 'worker.read',
    summary: 'Returns one worker with its state.',
    tag: 'workers',
    dialect: v1,
    schema: {
      params: WorkerParams,
      querystring: Type.Object({ namespace: Namespace }, { additionalProperties: false }),
      response: { 200: WorkerView },
    },
    handler: async ({ params, query }, _reply, context) => {
      const { type, instance_id: instanceId } = params
      const { namespace = systemNamespace } = query
      const wanted = { namespaces: [namespace], type, instanceId, countMax: 1 }
      const [worker] = await context.storage().listWorkers(wanted)
      if (worker === undefined) throw notFound({ namespace, type, instanceId })
      const clocks = await readClocks(context)
      return viewWorker(worker, clocks, context.watching.rules)
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/workers/{type}/{instance_id}',
    operationId: 'forgetWorker',
    errors: ['WORKER_NOT_FOUND'],
    permission: 'worker.write',
    summary: 'Forgets a worker that will not return. Its next heartbeat would add it again.',
    tag: 'workers',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: WorkerParams,
      body: Type.Object({ namespace: Namespace, reason: Reason }, { additionalProperties: false }),
      response: { 200: Type.Object({ forgotten: Type.Boolean({ description: 'Always true.' }) }) },
    },
    handler: async (request, _reply, context) => {
      const { type, instance_id: instanceId } = request.params
      const { namespace = systemNamespace, reason } = request.body
      requirePermission(request.caller, 'worker.write', namespace)
      const key = { namespace, type, instanceId }
      const audit = {
        ...createAttribution(request, reason),
        namespace,
        at: context.clock.now(),
        action: 'worker.forget',
        target: nameWorker(key),
        details: {},
      }
      const [{ forgotten }] = await context
        .engine()
        .write([{ op: 'forget-workers', workers: [key], audit: { ...audit, requestId: request.id } }])
      if (forgotten === 0) throw notFound(key)
      return { forgotten: true }
    },
  }),
]

type Query = Readonly<{ namespace?: string; type?: string; state?: string; limit: number }>
const workersPerRead = 1_000

/** Reads until the page is full: the state of a worker depends on the time, so no index has it. */
async function collectPage(query: Query, start: WorkerKey | undefined, context: ApiContext) {
  const { state, limit } = query
  const clocks = await readClocks(context)
  const shown: Static<typeof WorkerView>[] = []
  let last: Worker | null = null
  for await (const worker of readWorkers(query, start, context)) {
    const view = viewWorker(worker, clocks, context.watching.rules)
    if (state !== undefined && view.state !== state) continue
    if (shown.length === limit) return { shown, last }
    shown.push(view)
    last = worker
  }
  return { shown, last: null }
}

async function* readWorkers(
  { namespace, type, state, limit }: Query,
  start: WorkerKey | undefined,
  context: ApiContext,
): AsyncGenerator<Worker> {
  const countMax = state === undefined ? limit + 1 : workersPerRead
  const wanted = {
    ...(namespace !== undefined && { namespaces: [namespace] }),
    ...(type !== undefined && { type }),
    countMax,
  }
  for (let after = start; ; ) {
    const read = { ...wanted, ...(after !== undefined && { after }) }
    const workers: readonly Worker[] = await context.storage().listWorkers(read)
    yield* workers
    after = workers.at(-1)
    if (workers.length < countMax) return
  }
}

async function readClocks(context: ApiContext) {
  const { clocks } = await context.storage().readWatchRecords()
  return new Map(clocks.map((clock) => [clock.name, clock]))
}

function readPosition(cursor: string): WorkerKey {
  const [namespace, type, instanceId] = readCursor(cursor, list, ['string', 'string', 'string'])
  return { namespace, type, instanceId }
}

function notFound({ namespace, type, instanceId }: WorkerKey): KnownError {
  return new KnownError(
    'WORKER_NOT_FOUND',
    `there is no worker ${type}/${instanceId} in namespace ${namespace}`,
  )
}
