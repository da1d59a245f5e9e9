/** The reason that a caller gives for a change, which the audit log stores. */
import { Type } from 'typebox'

const description = 'Why you make this change. Stored in the audit log.'

export const Reason = Type.Optional(Type.String({ maxLength: 1_000, description }))

export const RequiredReason = Type.String({ minLength: 1, maxLength: 1_000, pattern: '\\S', description })
