/** Routes of groups: letters of a dead queue that have the same cause. */
import { Type } from 'typebox'
import { type GroupLifecycleState, groupLifecycleStates } from '../../../core/dead-letters/group-lifecycle.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { countedFields, oneOrMore } from '../filter/filter-fields.ts'
import { readCountedFilter } from '../filter/read-filter.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { GroupView, viewGroups } from './group-view.ts'
import { GroupParams, GroupReport, showGroup } from './show.ts'

const list = 'groups'
export const groupRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/groups',
    operationId: 'listGroups',
    permission: 'letter.read',
    summary: 'Lists groups of dead letters with the same cause, the largest first.',
    tag: 'groups',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          ...countedFields,
          include_empty: Type.Boolean({
            default: false,
            description: 'Also lists groups without letters that match.',
          }),
          lifecycle: oneOrMore(`Groups in this state: ${groupLifecycleStates.join(', ')}.`, 32, 1, {
            enum: groupLifecycleStates,
          }),
        },
        { default: 50, max: 200 },
      ),
      response: {
        200: Type.Object({
          groups: Type.Array(GroupView, { description: 'The groups of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query: { cursor, limit, include_empty, lifecycle, ...fields } }, _reply, context) => {
      const filter = await readCountedFilter(fields, 'query', context.storage)
      const [count, id] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'number'])
      const letters = context.letters()
      const found = await letters.listGroups({
        filter,
        ...(count !== undefined && id !== undefined && { after: { count, id } }),
        countMax: limit,
        isEmptyToo: include_empty,
        ...(lifecycle !== undefined && {
          lifecycle: { states: readLifecycles([lifecycle].flat()), now: context.clock.now() },
        }),
      })
      const last = found.length < limit ? undefined : found.at(-1)
      return {
        groups: await viewGroups(found, letters, context.clock.now()),
        next_cursor: last === undefined ? null : writeCursor(list, [last.count, last.id]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/groups/{id}',
    operationId: 'getGroup',
    errors: ['GROUP_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns a group, with its newest letter as a sample.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: GroupParams,
      response: { 200: GroupReport },
    },
    handler: async ({ params: { id } }, _reply, context) => showGroup(id, context),
  }),
]

function readLifecycles(texts: readonly string[]): readonly GroupLifecycleState[] {
  return texts.map((text) => {
    const state = groupLifecycleStates.find((name) => name === text)
    if (state !== undefined) return state
    const message = `must be one of ${groupLifecycleStates.join(', ')}`
    throw new InvalidRequest([{ field: 'query.lifecycle', message }])
  })
}
