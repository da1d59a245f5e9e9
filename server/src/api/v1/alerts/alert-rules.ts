/** Rules of alerts: the built-in ones, those of redrive.yaml, and those that people create. */
import { type Static, Type } from 'typebox'
import { findBuiltInRule } from '../../../core/alerts/built-in-rules.ts'
import { alertSeverities } from '../../../core/alerts/notification.ts'
import { groupKinds, ruleSources, type SourcedRule, stoppedStatuses } from '../../../core/alerts/rule.ts'
import {
  conditionTypes,
  decodeRule,
  encodeRule,
  findRuleNameProblem,
  ruleBounds,
} from '../../../core/alerts/rule-document.ts'
import { systemNamespace } from '../../../core/items/queue.ts'
import { findingRules, severities } from '../../../core/watching/findings.ts'
import { KnownError } from '../../../errors.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { type Caller, requirePermission } from '../../http/caller.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { duration, durationView } from '../values/duration.ts'
import { Reason } from '../values/reason.ts'
import { nullable } from '../values/schemas.ts'

const names = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: ruleBounds.nameMax }), {
      maxItems: ruleBounds.listMax,
      description,
    }),
  )

const Condition = component(
  'AlertCondition',
  Type.Object(
    {
      type: Type.Enum(conditionTypes, {
        description: 'The kind of condition. It decides which fields apply.',
      }),
      count_min: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: ruleBounds.countMax,
          description: 'letters, inflow: the number of letters at which the condition is true.',
        }),
      ),
      age: Type.Optional(duration('oldest-letter: how long ago the oldest open letter died.')),
      window: Type.Optional(duration('inflow: the time in which the letters died, up to 23h59m.')),
      kinds: Type.Optional(
        Type.Array(Type.Enum(groupKinds), { maxItems: 2, description: 'group: new, regressed or both.' }),
      ),
      active_for: Type.Optional(duration('group: how long the alert lasts if nobody decides. Default 24h.')),
      queues: names(
        'letters, oldest-letter, inflow, group: only these dead queues. * at the end: any ending.',
      ),
      letter_classes: names('The same conditions: only dead queues with one of these classes.'),
      excluded_letter_classes: names('The same conditions: no dead queues with one of these classes.'),
      findings: Type.Optional(
        Type.Array(Type.Enum(findingRules), { maxItems: 20, description: 'finding: the rules of findings.' }),
      ),
      finding_severity: Type.Optional(
        nullable(Type.Enum(severities), 'finding: only findings with this severity; null: all.'),
      ),
      subjects: names('finding: only these workers or lags. * at the end: any ending.'),
      statuses: Type.Optional(
        Type.Array(Type.Enum(stoppedStatuses), {
          maxItems: 2,
          description: 'consumer: its breaker is open (held), or it was disabled. Default: both.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
)

const channels = (text: string) =>
  nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: ruleBounds.listMax }),
    `The channels that are notified; null: all of the namespace.${text}`,
  )
const RuleSpec = component(
  'AlertRuleSpec',
  Type.Object(
    {
      namespace: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 256,
          description:
            'The namespace. Default _system, whose rules are about all namespaces. It never changes.',
        }),
      ),
      description: Type.Optional(
        Type.String({ maxLength: ruleBounds.textMax, description: 'The purpose of the rule, for people.' }),
      ),
      is_enabled: Type.Optional(
        Type.Boolean({ description: 'false: the rule has no alerts. Default true.' }),
      ),
      severity: Type.Optional(
        Type.Enum(alertSeverities, { description: 'The severity of its alerts. Default warning.' }),
      ),
      condition: Type.Optional(Condition),
      hold: Type.Optional(duration('How long the condition must be true before an alert fires. Default 0s.')),
      clear_after: Type.Optional(
        duration('How long the condition must be false before an alert is resolved. Default 0s.'),
      ),
      group_wait: Type.Optional(
        duration('Alerts that fire within this time are one notification. Default 30s.'),
      ),
      repeat_interval: Type.Optional(
        nullable(
          duration('A duration of at least 1m.'),
          'How often an alert that still fires is notified again; null: never. Default 4h.',
        ),
      ),
      channels: Type.Optional(channels(' Default null.')),
      reason: Reason,
    },
    {
      additionalProperties: false,
      description: 'For a built-in rule, fields that are left out keep their built-in values.',
    },
  ),
)

export const AlertRuleView = component(
  'AlertRule',
  Type.Object({
    name: Type.String({ description: 'The name of the rule.' }),
    namespace: Type.String({ description: 'The namespace of the rule.' }),
    source: Type.Enum(ruleSources, {
      description:
        'built-in: as it was delivered. api: created or changed through the API. configuration: part of the ' +
        'settings of the server, and cannot be changed through the API.',
    }),
    description: Type.String({ description: 'The purpose of the rule.' }),
    is_enabled: Type.Boolean({ description: 'Whether the rule has alerts.' }),
    severity: Type.Enum(alertSeverities, { description: 'The severity of its alerts.' }),
    condition: Condition,
    hold: durationView('How long the condition must be true before an alert fires.'),
    clear_after: durationView('How long the condition must be false before an alert is resolved.'),
    group_wait: durationView('Alerts that fire within this time are one notification.'),
    repeat_interval: nullable(Type.String(), 'How often an alert is notified again; null: never.'),
    channels: channels(''),
  }),
)

const RuleParams = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 100, description: 'The name of the rule.' }),
})

export const alertRuleRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/alerts/rules',
    operationId: 'listAlertRules',
    permission: 'alert.read',
    summary: 'Lists the rules of alerts by name.',
    tag: 'alerts',
    dialect: v1,
    schema: {
      response: { 200: Type.Object({ rules: Type.Array(AlertRuleView, { description: 'The rules.' }) }) },
    },
    handler: async ({ caller }, _reply, { alerts }) => {
      const rules = await alerts.rules.list()
      return { rules: rules.filter(({ namespace }) => caller.may('alert.read', namespace)).map(viewRule) }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/alerts/rules/{name}',
    operationId: 'getAlertRule',
    errors: ['ALERT_RULE_NOT_FOUND'],
    permission: 'alert.read',
    summary: 'Returns one rule of alerts.',
    tag: 'alerts',
    dialect: v1,
    schema: { params: RuleParams, response: { 200: AlertRuleView } },
    handler: async ({ params, caller }, _reply, context) =>
      viewRule(await findRule(params.name, caller, 'alert.read', context)),
  }),

  route({
    method: 'PUT',
    path: '/api/v1/alerts/rules/{name}',
    operationId: 'putAlertRule',
    errors: ['ALERT_RULE_FIXED', 'ALERT_RULE_EXISTS', 'ALERT_CONFIG_CHANGED', 'ALERT_CONFIGS_FULL'],
    permission: 'alert.write',
    summary: 'Creates or replaces a rule of alerts, or changes a built-in one.',
    tag: 'alerts',
    dialect: v1,
    isBodyOptional: true,
    schema: { params: RuleParams, body: RuleSpec, response: { 200: AlertRuleView } },
    handler: async (request, _reply, context) => {
      const { name } = request.params
      const { reason, namespace: given, ...fields } = request.body
      const problem = findRuleNameProblem(name)
      if (problem !== undefined) throw new KnownError('BAD_REQUEST', problem)
      const existing = await context.alerts.rules.get(name)
      const isVisible = existing !== null && request.caller.may('alert.write', existing.namespace)
      const namespace = given ?? (isVisible ? existing.namespace : systemNamespace)
      requirePermission(request.caller, 'alert.write', namespace)
      if (existing !== null && existing.namespace !== namespace)
        throw new KnownError('ALERT_RULE_EXISTS', `a rule ${name} exists in another namespace`)
      const decoded = decodeRule(name, namespace, fields, findBuiltInRule(name))
      if ('problems' in decoded) {
        throw new InvalidRequest(
          decoded.problems.map(({ field, message }) => ({ field: `body.${field}`, message })),
        )
      }
      await context.alerts.rules.put(decoded.rule, createAttribution(request, reason))
      return viewRule(await findRule(name, request.caller, 'alert.write', context))
    },
  }),

  route({
    method: 'DELETE',
    path: '/api/v1/alerts/rules/{name}',
    operationId: 'deleteAlertRule',
    errors: ['ALERT_RULE_NOT_FOUND', 'ALERT_RULE_FIXED', 'ALERT_CONFIG_CHANGED'],
    permission: 'alert.write',
    summary: 'Deletes a rule of alerts. A built-in rule gets its built-in values again.',
    tag: 'alerts',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: RuleParams,
      body: Type.Object({ reason: Reason }, { additionalProperties: false }),
      response: { 200: Type.Object({ deleted: Type.Boolean({ description: 'Always true.' }) }) },
    },
    handler: async (request, _reply, context) => {
      const rule = await findRule(request.params.name, request.caller, 'alert.write', context)
      await context.alerts.rules.remove(rule, createAttribution(request, request.body.reason))
      return { deleted: true }
    },
  }),
]

/** A rule of another namespace does not exist for the caller. */
async function findRule(
  name: string,
  caller: Caller,
  permission: 'alert.read' | 'alert.write',
  { alerts }: Pick<ApiContext, 'alerts'>,
): Promise<SourcedRule> {
  const rule = await alerts.rules.get(name)
  if (rule !== null && caller.may(permission, rule.namespace)) return rule
  throw new KnownError('ALERT_RULE_NOT_FOUND', `there is no rule ${JSON.stringify(name)}`)
}

function viewRule(rule: SourcedRule): Static<typeof AlertRuleView> {
  const { name, namespace, source } = rule
  // encodeRule writes exactly the fields of the view.
  const fields = encodeRule(rule) as Omit<Static<typeof AlertRuleView>, 'name' | 'namespace' | 'source'>
  return { name, namespace, source, ...fields }
}
