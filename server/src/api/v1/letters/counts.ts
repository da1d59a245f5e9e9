import { type Static, Type } from 'typebox'
import { letterStatus, letterStatuses } from '../../../ops/letter-status.ts'
import type { CountedBy, LetterCount } from '../../../storage/contract/letters.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { allQueues, countedFields, readCountedFilter } from '../filter/letter-filter.ts'

/** What may be counted by, and what the store calls it. A class is a set of queues. */
const countedBy = {
  queue: 'queue',
  class: 'queue',
  status: 'state',
  group: 'group',
  origin: 'origin',
  reason: 'reason',
  slug: 'slug',
  error_class: 'errorClass',
  retry_count: 'redrives',
} as const satisfies Record<string, CountedBy>
type By = keyof typeof countedBy

const CountView = Type.Object({
  count: Type.Integer(),
  queue: Type.Optional(Type.String()),
  class: Type.Optional(Type.String()),
  status: Type.Optional(Type.Enum([...letterStatuses])),
  group: Type.Optional(Type.Integer()),
  origin: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
  slug: Type.Optional(Type.String()),
  error_class: Type.Optional(Type.String()),
  retry_count: Type.Optional(Type.Integer({ description: '10 stands for 10 and more.' })),
})
type CountView = Static<typeof CountView>

export const letterCountRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters/counts',
    permission: 'letter.read',
    summary: 'How many dead letters there are, exactly, by what is asked for.',
    tag: 'letters',
    dialect: v1,
    schema: {
      querystring: Type.Object(
        {
          ...countedFields,
          by: Type.Optional(
            Type.String({
              maxLength: 200,
              description: `Any of ${Object.keys(countedBy).join(', ')}, with commas between. Nothing: one sum.`,
              examples: ['queue,status'],
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          counts: Type.Array(CountView, { description: 'Largest first; what is zero is left out.' }),
          total: Type.Integer(),
          is_exact: Type.Optional(
            Type.Boolean({
              description:
                'Only as false: error classes are too many to be told apart, and what is counted as `(others)` may be of any of them, also of the one asked for.',
            }),
          ),
        }),
      },
    },
    handler: async ({ query: { by: text = '', ...fields } }, _reply, context) => {
      const by = readBy(text)
      const filter = await readCountedFilter(fields, 'query', context.storage)
      const asked = [...new Set(by.map((name) => countedBy[name]))]
      const letters = context.letters()
      const found = await letters.count({ filter, by: asked })
      const classes = new Map<string, string>()
      if (by.includes('class')) {
        for await (const queue of allQueues(context.storage())) classes.set(queue.name, queue.letterClass)
      }
      const counts = summed(found.map((count) => viewCount(count, by, classes)))
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
  const message = `has ${JSON.stringify(unknown)}; it can be any of ${Object.keys(countedBy).join(', ')}`
  throw new InvalidRequest([{ field: 'query.by', message }])
}

function viewCount(found: LetterCount, by: readonly By[], classes: ReadonlyMap<string, string>): CountView {
  const values: Partial<Record<By, string | number | undefined>> = {
    queue: found.queue,
    class: classes.get(found.queue ?? '') ?? '',
    status: found.state === undefined ? undefined : letterStatus(found.state),
    group: found.group,
    origin: found.origin,
    reason: found.reason,
    slug: found.slug,
    error_class: found.errorClass,
    retry_count: found.redrives,
  }
  return { count: found.count, ...Object.fromEntries(by.map((name) => [name, values[name]])) } as CountView
}

/** Several states are one status, and several queues one class. */
function summed(counts: readonly CountView[]): CountView[] {
  const sums = new Map<string, CountView>()
  for (const { count, ...what } of counts) {
    const key = JSON.stringify(what)
    sums.set(key, { ...what, count: (sums.get(key)?.count ?? 0) + count })
  }
  return [...sums.values()].sort((a, b) => b.count - a.count)
}
