import type { FastifyRequest } from 'fastify'
import type { Permission } from './permission.ts'

/** Who asks. The audit log writes the name down. */
export type Caller = Readonly<{ name: string }>

/** Says who asks, or throws a KnownError when they may not. Asked before the body is read. */
export type Authorize = (permission: Permission, request: FastifyRequest) => Caller

const anonymous: Caller = { name: 'anonymous' }

/** Without access control everybody may do everything: protected mode lets nobody in from outside. */
export const allowAll: Authorize = () => anonymous
