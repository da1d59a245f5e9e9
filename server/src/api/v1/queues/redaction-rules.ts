/** Routes of the rules by which a queue hides parts of its items from callers without `payload.read`. */
import { type Static, Type } from 'typebox'
import {
  findRedactionProblem,
  type RedactionPolicy,
  type RedactionRule,
  redactionBounds,
} from '../../../core/redaction/redaction-rules.ts'
import { KnownError } from '../../../errors.ts'
import { createAttribution } from '../../http/attribution.ts'
import { mayReadContent } from '../../http/content-permission.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { findQueue } from '../causes/find-queue.ts'
import { v1 } from '../dialect.ts'
import { parseWildcardPath } from '../filter/json-path.ts'
import { formatPath } from '../filter/view-filter.ts'
import { Reason } from '../values/reason.ts'

const RuleSpec = component(
  'RedactionRule',
  Type.Object(
    {
      header: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 200,
          description: 'The name of a header, in any case. Its values are hidden.',
        }),
      ),
      json_path: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 1_000,
          description:
            'A path in a JSON payload, such as `$.customer.name` or `$.cards[*].number`. `[*]` stands for every ' +
            'element or field. The value is hidden, whatever its type.',
        }),
      ),
      pattern: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: redactionBounds.patternMax,
          description:
            'A regular expression in RE2 syntax. Matches are hidden in payloads, keys, header values and error ' +
            'texts. With a group: only the first group.',
        }),
      ),
    },
    { additionalProperties: false, description: 'Give one of header, json_path and pattern.' },
  ),
)
type RuleSpec = Static<typeof RuleSpec>

const fields = {
  rules: Type.Array(RuleSpec, { maxItems: redactionBounds.rulesMax, description: 'The rules.' }),
  is_content_shown: Type.Boolean({
    description:
      'Whether callers without the permission payload.read see payload and key without the named parts. False: ' +
      'they see neither.',
  }),
}
const QueueParams = Type.Object({
  name: Type.String({ maxLength: 512, description: 'Name of the queue.' }),
})

export const redactionRuleRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/queues/{name}/redaction-rules',
    operationId: 'listRedactionRules',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'queue.stats',
    summary: 'Returns the rules by which a queue hides parts of its items.',
    tag: 'queues',
    dialect: v1,
    schema: { params: QueueParams, response: { 200: Type.Object(fields) } },
    handler: async ({ params: { name } }, _reply, context) =>
      viewRedaction((await findQueue(name, context)).redaction),
  }),

  route({
    method: 'PUT',
    path: '/api/v1/queues/{name}/redaction-rules',
    operationId: 'setRedactionRules',
    errors: ['QUEUE_NOT_FOUND', 'QUEUE_SHUTTING_DOWN'],
    permission: 'queue.update',
    summary:
      'Replaces the rules by which a queue hides parts of its items. They decide what others may read, so the ' +
      'caller must be allowed to read the content of the queue.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: QueueParams,
      body: Type.Object(
        {
          rules: fields.rules,
          is_content_shown: Type.Optional(fields.is_content_shown),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: Type.Object(fields) },
    },
    handler: async (request, _reply, context) => {
      const { rules, is_content_shown: isContentShown = false, reason } = request.body
      const { name, namespace } = await findQueue(request.params.name, context)
      const { caller } = request
      if (!mayReadContent(caller, namespace)) {
        throw new KnownError(
          'ACCESS_DENIED',
          `user ${caller.name} may not read the content of queue ${name}, and so not decide who may`,
        )
      }
      const changes = { redaction: { rules: readRules(rules), isContentShown } }
      const changed = await context.engine().updateQueue(name, changes, createAttribution(request, reason))
      return viewRedaction(changed.redaction)
    },
  }),
]

function readRules(specs: readonly RuleSpec[]): RedactionRule[] {
  const rules = specs.map(({ header, json_path, pattern }, index): RedactionRule => {
    const refuse = (field: string, message: string) =>
      new InvalidRequest([{ field: `body.rules[${index}].${field}`, message }])
    if ([header, json_path, pattern].filter((given) => given !== undefined).length !== 1)
      throw refuse('pattern', ', header or json_path must be given, and only one of them')
    if (header !== undefined) return { header }
    if (pattern !== undefined) return { pattern }
    const read = parseWildcardPath(json_path ?? '')
    if ('problem' in read) throw refuse('json_path', read.problem)
    return { path: read.path }
  })
  const problem = findRedactionProblem(rules)
  if (problem !== undefined) throw new InvalidRequest([{ field: 'body.rules', message: `: ${problem}` }])
  return rules
}

function viewRedaction(policy: RedactionPolicy | undefined) {
  const { rules = [], isContentShown = false } = policy ?? {}
  return { rules: rules.map(viewRule), is_content_shown: isContentShown }
}

function viewRule(rule: RedactionRule): RuleSpec {
  return 'path' in rule ? { json_path: formatPath(rule.path) } : { ...rule }
}
