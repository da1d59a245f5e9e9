import type { FastifyRequest } from 'fastify'
import { listNamespaces, mayAct, mayActSomewhere } from '../../core/access/grants.ts'
import type { Identity } from '../../core/access/identity.ts'
import type { Permission } from '../../core/access/permissions.ts'
import { KnownError } from '../../errors.ts'
import { noProxies, readClientAddress, type TrustedProxies } from './access/client-address.ts'

/** The client that sent a request. The audit log records the user, the key and the address. */
export interface Caller {
  /** The name of the user. */
  readonly name: string
  readonly userId: string
  /** The visible part of the API key; null: the caller has no key. */
  readonly keyPrefix: string | null
  /** The namespace that the key is limited to; null: not limited. */
  readonly scope: string | null
  /** The network address of the client; empty if its connection is already closed. */
  readonly address: string
  /** Whether the caller has the permission in at least one namespace. */
  maySomewhere(permission: Permission): boolean
  /** Whether the caller has the permission in the namespace. */
  may(permission: Permission, namespace: string): boolean
  /** The namespaces in which the caller has the permission. Null: all of them. */
  listNamespaces(permission: Permission): readonly string[] | null
  /**
   * For requests that wait or stream: calls `end` once, when the credential expires, is revoked or loses a
   * permission. Returns a function that ends the watch.
   */
  watch(end: (reason: KnownError) => void): () => void
}

/** Watches the credentials of requests. */
export type CallerWatch = (
  request: FastifyRequest,
  identity: Identity,
  end: (reason: KnownError) => void,
) => () => void

/** Without access control there is no credential to lose. */
const noWatch: CallerWatch = () => () => undefined

/** Throws ACCESS_DENIED. Called before anything is looked up, so that an error reveals nothing. */
export function requirePermission(caller: Caller, permission: Permission, namespace: string): void {
  if (caller.may(permission, namespace)) return
  throw new KnownError(
    'ACCESS_DENIED',
    `user ${caller.name} lacks the permission ${permission} in namespace ${namespace}`,
  )
}

/** `proxies`: decides whose headers about the address are believed. */
export function createCaller(
  identity: Identity,
  request: FastifyRequest,
  proxies: TrustedProxies = noProxies,
  watch: CallerWatch = noWatch,
): Caller {
  return new IdentifiedCaller(identity, request, proxies, watch)
}

/** A class, because an object with closures per request is slower to create. */
class IdentifiedCaller implements Caller {
  readonly #identity: Identity
  readonly #request: FastifyRequest
  readonly #proxies: TrustedProxies
  readonly #watch: CallerWatch

  constructor(identity: Identity, request: FastifyRequest, proxies: TrustedProxies, watch: CallerWatch) {
    this.#identity = identity
    this.#request = request
    this.#proxies = proxies
    this.#watch = watch
  }

  get name(): string {
    return this.#identity.name
  }

  get userId(): string {
    return this.#identity.userId
  }

  get keyPrefix(): string | null {
    return this.#identity.keyPrefix
  }

  get scope(): string | null {
    return this.#identity.scope
  }

  get address(): string {
    return readClientAddress(this.#request.raw, this.#proxies)
  }

  maySomewhere(permission: Permission): boolean {
    return mayActSomewhere(this.#identity, permission)
  }

  may(permission: Permission, namespace: string): boolean {
    return mayAct(this.#identity, permission, namespace)
  }

  listNamespaces(permission: Permission): readonly string[] | null {
    return listNamespaces(this.#identity, permission)
  }
  watch(end: (reason: KnownError) => void): () => void {
    return this.#watch(this.#request, this.#identity, end)
  }
}
