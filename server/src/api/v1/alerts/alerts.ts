/** The list of alerts, and what people decide about them. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { alertSeverities } from '../../../core/alerts/notification.ts'
import { KnownError } from '../../../errors.ts'
import type { Decision } from '../../../ops/alerts/alerts.ts'
import { toAlert } from '../../../ops/alerts/stored-alert.ts'
import { alertStates } from '../../../storage/contract/alerts.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { parseInstant } from '../../http/wire/wire-time.ts'
import { Note, parseUntil, Until } from '../causes/lifecycle.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { AlertView, viewAlert } from './alert-view.ts'

const list = 'alerts'
const condition = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 512, description }))
const timeBound = (description: string) =>
  Type.Optional(Type.String({ maxLength: 64, description, examples: ['2026-01-02T03:04:05Z'] }))

const AlertParams = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 64, description: 'Id of the alert.' }),
})
const decisionErrors = ['ALERT_NOT_FOUND', 'ALERT_STATE', 'ALERT_CHANGED'] as const
const summaries = {
  acknowledge: 'Acknowledges an alert: somebody works on it. It is not notified again.',
  resolve: 'Resolves an alert. It does not fire again before its condition was false.',
}

export const alertRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/alerts',
    operationId: 'listAlerts',
    permission: 'alert.read',
    summary: 'Lists alerts and their history, newest first.',
    tag: 'alerts',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          state: Type.Optional(
            Type.Array(Type.Enum(alertStates), { maxItems: 3, description: 'Only alerts in these states.' }),
          ),
          rule: condition('Only alerts of this rule.'),
          severity: Type.Optional(
            Type.Enum(alertSeverities, { description: 'Only alerts with this severity.' }),
          ),
          queue: condition('Only alerts about this queue.'),
          namespace: condition('Only alerts of this namespace.'),
          started_from: timeBound('Only alerts that started at or after this RFC 3339 time.'),
          started_until: timeBound('Only alerts that started before this RFC 3339 time.'),
        },
        { default: 100, max: 500 },
      ),
      response: {
        200: Type.Object({
          alerts: Type.Array(AlertView, { description: 'The alerts of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query }, _reply, context) => {
      const { state, rule, severity, queue, namespace, limit } = query
      const beforeId = query.cursor === undefined ? undefined : readCursor(query.cursor, list, ['string'])[0]
      const startedFrom = readTime('started_from', query.started_from)
      const startedUntil = readTime('started_until', query.started_until)
      const found = await context.storage().listAlerts({
        ...(state !== undefined && { states: state }),
        ...(rule !== undefined && { rule }),
        ...(severity !== undefined && { severity }),
        ...(queue !== undefined && { queue }),
        ...(namespace !== undefined && { namespaces: [namespace] }),
        ...(startedFrom !== undefined && { startedFrom }),
        ...(startedUntil !== undefined && { startedUntil }),
        ...(beforeId !== undefined && { beforeId }),
        countMax: limit + 1,
      })
      const shown = found.slice(0, limit)
      const last = found.length > limit ? shown.at(-1) : undefined
      return {
        alerts: shown.map((alert) => viewAlert(toAlert(alert))),
        next_cursor: last === undefined ? null : writeCursor(list, [last.id]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/alerts/{id}',
    operationId: 'getAlert',
    errors: ['ALERT_NOT_FOUND'],
    permission: 'alert.read',
    summary: 'Returns one alert.',
    tag: 'alerts',
    dialect: v1,
    schema: { params: AlertParams, response: { 200: AlertView } },
    handler: async ({ params }, _reply, context) => showAlert(params.id, context),
  }),

  ...(['acknowledge', 'resolve'] as const).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/alerts/{id}/${action}`,
      operationId: `${action}Alert`,
      errors: decisionErrors,
      permission: 'alert.write',
      summary: summaries[action],
      tag: 'alerts',
      dialect: v1,
      isBodyOptional: true,
      schema: {
        params: AlertParams,
        body: Type.Object({ note: Note, reason: Reason }, { additionalProperties: false }),
        response: { 200: AlertView },
      },
      handler: async (request, _reply, context) => {
        const { note = '', reason } = request.body
        return decide(request.params.id, { action, note }, request, reason, context)
      },
    }),
  ),

  route({
    method: 'POST',
    path: '/api/v1/alerts/{id}/mute',
    operationId: 'muteAlert',
    errors: decisionErrors,
    permission: 'alert.write',
    summary: 'Mutes an alert until a time. Nothing is notified about it until then.',
    tag: 'alerts',
    dialect: v1,
    schema: {
      params: AlertParams,
      body: Type.Object({ until: Until, note: Note, reason: Reason }, { additionalProperties: false }),
      response: { 200: AlertView },
    },
    handler: async (request, _reply, context) => {
      const { until, note = '', reason } = request.body
      const decision = { action: 'mute', note, until: parseUntil(until, context.clock.now()) } as const
      return decide(request.params.id, decision, request, reason, context)
    },
  }),
]

async function showAlert(id: string, context: ApiContext) {
  const found = await context.storage().getAlert(id)
  if (found === null) throw new KnownError('ALERT_NOT_FOUND', `there is no alert ${JSON.stringify(id)}`)
  return viewAlert(toAlert(found))
}

/** Shows the alert as the caller may see it. */
async function decide(
  id: string,
  decision: Decision,
  request: Pick<FastifyRequest, 'caller' | 'id'>,
  reason: string | undefined,
  context: ApiContext,
) {
  // The alert must be visible to the caller before anything about it is said.
  await showAlert(id, context)
  await context.alerts.decide(id, decision, createAttribution(request, reason))
  return showAlert(id, context)
}

function readTime(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const at = parseInstant(text)
  if (at !== undefined) return at
  throw new InvalidRequest([{ field: `query.${field}`, message: 'must be an RFC 3339 time' }])
}
