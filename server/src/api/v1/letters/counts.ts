import { type Static, Type } from 'typebox'
import { letterStatuses, toLetterStatus } from '../../../ops/metrics/letter-status.ts'
import type { CountedBy, LetterCount } from '../../../storage/contract/letters.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { countedFields } from '../filter/filter-fields.ts'
import { readAllQueues, readCountedFilter } from '../filter/read-filter.ts'

/** The fields to count by, with their names in the store. A class is a set of queues. */
const countedBy = {
  queue: 'queue',
  letter_class: 'queue',
  status: 'state',
  group_id: 'group',
  origin: 'origin',
  error_code: 'errorCode',
  slug: 'slug',
  error_class: 'errorClass',
  retry_count: 'retryCount',
} as const satisfies Record<string, CountedBy>
type By = keyof typeof countedBy

const text = (description: string) => Type.Optional(Type.String({ description }))

const CountView = component(
  'LetterCount',
  Type.Object({
    count: Type.Integer({ description: 'Number of letters with these values.' }),
    queue: text('The dead queue.'),
    letter_class: text('The class of the dead queue.'),
    status: Type.Optional(Type.Enum([...letterStatuses], { description: 'The status.' })),
    group_id: Type.Optional(Type.Integer({ description: 'Id of the group.' })),
    origin: text('The source queue or topic.'),
    error_code: text('The code of the failure.'),
    slug: text('The short form of the message.'),
    error_class: text('The error class.'),
    retry_count: Type.Optional(
      Type.Integer({ description: 'Number of failed redrives; 10 stands for 10 and more.' }),
    ),
  }),
)
type CountView = Static<typeof CountView>

export const letterCountRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters/counts',
    operationId: 'countLetters',
    permission: 'letter.read',
    summary: 'Counts dead letters exactly, by the given fields.',
    tag: 'letters',
    dialect: v1,
    schema: {
      querystring: Type.Object(
        {
          ...countedFields,
          by: Type.Optional(
            Type.String({
              maxLength: 200,
              description: `The fields to count by, separated by commas: ${Object.keys(countedBy).join(', ')}. Without fields: one sum.`,
              examples: ['queue,status'],
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          counts: Type.Array(CountView, {
            description: 'The largest counts first. Counts of zero are omitted.',
          }),
          total: Type.Integer({ description: 'The sum of all counts.' }),
          is_exact: Type.Optional(
            Type.Boolean({
              description:
                'Present only as false: there are too many error classes to count them separately, and letters ' +
                'counted as `(others)` may have any of them.',
            }),
          ),
        }),
      },
    },
    handler: async ({ query: { by: names = '', ...fields } }, _reply, context) => {
      const by = readBy(names)
      const filter = await readCountedFilter(fields, 'query', context.storage)
      const asked = [...new Set(by.map((name) => countedBy[name]))]
      const letters = context.letters()
      const found = await letters.count({ filter, by: asked })
      const classes = new Map<string, string>()
      if (by.includes('letter_class')) {
        for await (const queue of readAllQueues(context.storage())) classes.set(queue.name, queue.letterClass)
      }
      const counts = mergeCounts(found.map((count) => viewCount(count, by, classes)))
      return {
        counts,
        total: counts.reduce((sum, { count }) => sum + count, 0),
        ...(!(await letters.areCountsExact(filter, asked)) && { is_exact: false }),
      }
    },
  }),
]

function readBy(text: string): By[] {
  const names = text.split(',').flatMap((name) => name.trim() || [])
  const unknown = names.find((name) => !Object.hasOwn(countedBy, name))
  if (unknown === undefined) return [...new Set(names)] as By[]
  const message = `has ${JSON.stringify(unknown)}; allowed are ${Object.keys(countedBy).join(', ')}`
  throw new InvalidRequest([{ field: 'query.by', message }])
}

function viewCount(found: LetterCount, by: readonly By[], classes: ReadonlyMap<string, string>): CountView {
  const values: Partial<Record<By, string | number | undefined>> = {
    queue: found.queue,
    letter_class: classes.get(found.queue ?? '') ?? '',
    status: found.state === undefined ? undefined : toLetterStatus(found.state),
    group_id: found.group,
    origin: found.origin,
    error_code: found.errorCode,
    slug: found.slug,
    error_class: found.errorClass,
    retry_count: found.retryCount,
  }
  return { count: found.count, ...Object.fromEntries(by.map((name) => [name, values[name]])) } as CountView
}

/** Adds counts with the same values: several states have one status, and several queues one class. */
function mergeCounts(counts: readonly CountView[]): CountView[] {
  const sums = new Map<string, CountView>()
  for (const { count, ...what } of counts) {
    const key = JSON.stringify(what)
    sums.set(key, { ...what, count: (sums.get(key)?.count ?? 0) + count })
  }
  return [...sums.values()].sort((a, b) => b.count - a.count)
}
