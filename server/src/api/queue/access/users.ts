import { create } from '@bufbuild/protobuf'
import { createAttribution } from '../../http/attribution.ts'
import { checkNoNul } from '../checks/names.ts'
import {
  UserCreateRequestSchema,
  UserCreateResponseSchema,
  UserSchema,
  UsersDeleteRequestSchema,
  UsersListRequestSchema,
  UsersListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toTimestamp } from '../protocol/times.ts'
import { checkGiven, checkText, readPage } from './checks.ts'

const create_ = queueRoute({
  path: '/v1/users.create',
  permission: 'user.create',
  errors: ['USER_EXISTS', 'ACCESS_CHANGED'],
  summary: 'Creates a user, who has no roles and no keys yet.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(UserCreateRequestSchema),
  response: createCodec(UserCreateResponseSchema),
  handle: async ({ username, email, externalId }, call) => {
    checkText('username', username, 128)
    checkGiven('username', username)
    checkText('email', email, 256)
    checkText('external_id', externalId, 256)
    const id = await call.context
      .access()
      .users.create({ username, email, externalId }, createAttribution(call.request))
    return create(UserCreateResponseSchema, { id })
  },
})

const list = queueRoute({
  path: '/v1/users.list',
  permission: 'user.list',
  summary: 'Lists the users in the order of their ids, starting at the pivot.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(UsersListRequestSchema),
  response: createCodec(UsersListResponseSchema),
  handle: async (message, { context }) => {
    const users = await context.access().users.list(readPage(message))
    const items = users.map(({ createdAt, updatedAt, ...user }) =>
      create(UserSchema, { ...user, createdAt: toTimestamp(createdAt), updatedAt: toTimestamp(updatedAt) }),
    )
    return create(UsersListResponseSchema, { items })
  },
})

const delete_ = queueRoute({
  path: '/v1/users.delete',
  permission: 'user.delete',
  errors: ['USER_NOT_FOUND', 'ACCESS_CHANGED'],
  summary: 'Deletes a user with its keys and role bindings. Its keys stop working immediately.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(UsersDeleteRequestSchema),
  handle: async ({ id }, call) => {
    checkNoNul('id', id)
    await call.context.access().users.delete(id, createAttribution(call.request))
    return undefined
  },
})

export const userRoutes = [create_, list, delete_]
