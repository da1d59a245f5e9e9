/**
 * What a caller must be allowed to do, by the name under which access is granted. `public` needs no
 * credential, now or later.
 */
export const permissions = ['public', 'server.info', 'queue.list', 'queue.stats'] as const

export type Permission = (typeof permissions)[number]
