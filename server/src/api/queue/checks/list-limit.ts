import { invalid } from '../protocol/fault.ts'

/** 0 stands for the default. */
export function limitOf(limit: number): number {
  if (limit < 0) throw invalid('limit is invalid; limit cannot be negative')
  if (limit > 65_536) throw invalid('limit is invalid; cannot be greater than 65536')
  return limit === 0 ? 1_000 : limit
}
