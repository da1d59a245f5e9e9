/** Routes of the rules by which the letters of a dead queue are grouped. */
import { type Static, Type } from 'typebox'
import {
  findRuleProblem,
  type GroupingRule,
  ruleBounds,
  ruleNamePattern,
} from '../../../core/grouping/rules.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { parseJsonPath } from '../filter/json-path.ts'
import { formatPath } from '../filter/view-filter.ts'
import { Reason } from '../values/reason.ts'
import { findQueue } from './find-queue.ts'

const RuleSpec = component(
  'GroupingRule',
  Type.Object(
    {
      name: Type.String({
        pattern: ruleNamePattern,
        description: 'A variable is shown as `<name>`, a code as `name=value`.',
      }),
      as: Type.Enum(['variable', 'code'], {
        description: 'variable: the value is data and does not separate causes; code: it separates causes.',
      }),
      pattern: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: ruleBounds.patternMax,
          description:
            'A regular expression in RE2 syntax, matched in the error message. With a group: the first group.',
        }),
      ),
      json_path: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 1_000,
          description: 'A path to a text, number or boolean of a JSON payload, such as `$.event.type`.',
        }),
      ),
    },
    { additionalProperties: false, description: 'Give one of pattern and json_path.' },
  ),
)
type RuleSpec = Static<typeof RuleSpec>

const Rules = Type.Array(RuleSpec, {
  maxItems: ruleBounds.rulesMax,
  description: 'The rules, applied in this order.',
})
const QueueParams = Type.Object({
  name: Type.String({ maxLength: 512, description: 'Name of the dead queue.' }),
})
const previewedMax = 2_000

export const groupingRuleRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/queues/{name}/grouping-rules',
    operationId: 'listGroupingRules',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns the rules by which the letters of a dead queue are grouped.',
    tag: 'groups',
    dialect: v1,
    schema: { params: QueueParams, response: { 200: Type.Object({ rules: Rules }) } },
    handler: async ({ params: { name } }, _reply, context) => {
      const { groupingRules = [] } = await findQueue(name, context)
      return { rules: groupingRules.map(viewRule) }
    },
  }),

  route({
    method: 'PUT',
    path: '/api/v1/queues/{name}/grouping-rules',
    operationId: 'setGroupingRules',
    errors: ['QUEUE_NOT_FOUND', 'QUEUE_SHUTTING_DOWN'],
    permission: 'queue.update',
    summary:
      'Replaces the rules by which the letters of a dead queue are grouped. New letters follow them immediately; ' +
      'a regroup job applies them to existing letters.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: QueueParams,
      body: Type.Object({ rules: Rules, reason: Reason }, { additionalProperties: false }),
      response: { 200: Type.Object({ rules: Rules }) },
    },
    handler: async (request, _reply, context) => {
      const { rules, reason } = request.body
      const { name } = await findQueue(request.params.name, context)
      const changes = { groupingRules: readRules(rules) }
      const changed = await context.engine().updateQueue(name, changes, createAttribution(request, reason))
      return { rules: (changed.groupingRules ?? []).map(viewRule) }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/grouping-rules/preview',
    operationId: 'previewGroupingRules',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'payload.read',
    summary: 'Shows what rules would do to the newest letters of a dead queue, and changes nothing.',
    tag: 'groups',
    dialect: v1,
    slowMs: 10_000,
    schema: {
      params: QueueParams,
      body: Type.Object(
        {
          rules: Rules,
          limit: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: previewedMax,
              description: 'Letters to compare. Default 500.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          examined_count: Type.Integer({ description: 'Number of letters that were compared.' }),
          changed_count: Type.Integer({ description: 'Number of letters that would get another title.' }),
          group_count_before: Type.Integer({ description: 'Number of groups with the present rules.' }),
          group_count: Type.Integer({ description: 'Number of groups with these rules.' }),
          groups: Type.Array(Type.Object({ title: Type.String(), count: Type.Integer() }), {
            description: 'The largest groups with these rules.',
          }),
          examples: Type.Array(
            Type.Object({ id: Type.String(), title_before: Type.String(), title: Type.String() }),
            { description: 'Some letters that would get another title.' },
          ),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { rules, limit = 500 } = request.body
      const { name } = await findQueue(request.params.name, context)
      const preview = await context.letters().previewRules(name, readRules(rules), limit)
      return {
        examined_count: preview.examined,
        changed_count: preview.changed,
        group_count_before: preview.groupsBefore,
        group_count: preview.groupsAfter,
        groups: [...preview.groups],
        examples: preview.examples.map(({ letterId, before, after }) => ({
          id: letterId,
          title_before: before,
          title: after,
        })),
      }
    },
  }),
]

function readRules(specs: readonly RuleSpec[]): GroupingRule[] {
  const rules = specs.map(({ name, as, pattern, json_path }, index): GroupingRule => {
    const refuse = (field: string, message: string) =>
      new InvalidRequest([{ field: `body.rules[${index}].${field}`, message }])
    if ((pattern === undefined) === (json_path === undefined))
      throw refuse('pattern', 'or json_path must be given, and not both')
    if (pattern !== undefined) return { name, as, pattern }
    const read = parseJsonPath(json_path ?? '')
    if ('problem' in read) throw refuse('json_path', read.problem)
    return { name, as, path: read.path }
  })
  const problem = findRuleProblem(rules)
  if (problem !== undefined) throw new InvalidRequest([{ field: 'body.rules', message: `: ${problem}` }])
  return rules
}

function viewRule(rule: GroupingRule): RuleSpec {
  const { name, as } = rule
  return 'pattern' in rule
    ? { name, as, pattern: rule.pattern }
    : { name, as, json_path: formatPath(rule.path) }
}
