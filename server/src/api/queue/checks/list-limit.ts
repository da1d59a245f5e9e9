import { badRequest } from '../protocol/fault.ts'

/** 0 stands for the default. */
export function readListLimit(limit: number): number {
  if (limit < 0) throw badRequest('limit is invalid; limit cannot be negative')
  if (limit > 65_536) throw badRequest('limit is invalid; cannot be greater than 65536')
  return limit === 0 ? 1_000 : limit
}
