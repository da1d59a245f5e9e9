import { describe, expect, it } from 'vitest'
import { coversGrants, type Grants } from './grants.ts'
import type { Permission } from './permissions.ts'

const grant = (namespace: string, ...permissions: Permission[]) => ({
  namespace,
  permissions: new Set(permissions),
})
const of = (...grants: ReturnType<typeof grant>[]): Grants => ({ grants, scope: null })

describe('grants that replace others', () => {
  it.each<readonly [string, Grants, Grants, boolean]>([
    ['the same grants', of(grant('shop', 'queue.lease')), of(grant('shop', 'queue.lease')), true],
    [
      'more permissions',
      of(grant('shop', 'queue.lease', 'queue.stats')),
      of(grant('shop', 'queue.lease')),
      true,
    ],
    [
      'a role for all namespaces',
      of(grant('_system', 'queue.lease')),
      of(grant('shop', 'queue.lease')),
      true,
    ],
    ['another namespace', of(grant('mill', 'queue.lease')), of(grant('shop', 'queue.lease')), false],
    [
      'a namespace instead of all',
      of(grant('shop', 'queue.lease')),
      of(grant('_system', 'queue.lease')),
      false,
    ],
    ['no grants', of(), of(grant('shop', 'queue.lease')), false],
    ['another scope', { ...of(grant('shop', 'queue.lease')), scope: 'shop' }, of(), false],
  ])('%s', (_, after, before, isCovered) => {
    expect(coversGrants(after, before)).toBe(isCovered)
  })
})
