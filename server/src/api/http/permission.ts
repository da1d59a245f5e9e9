/**
 * What a caller must be allowed to do, by the name under which access is granted. `public` needs no
 * credential, now or later.
 */
export const permissions = [
  'public',
  'server.info',
  'queue.create',
  'queue.update',
  'queue.delete',
  'queue.list',
  'queue.stats',
  'queue.produce',
  'queue.lease',
  'queue.complete',
  'queue.retry',
  'queue.clear',
  'letter.read',
  'letter.redrive',
  'letter.edit',
  'letter.discard',
  'letter.restore',
  'letter.capture',
  'campaign.read',
  'campaign.write',
  'audit.read',
] as const

export type Permission = (typeof permissions)[number]
