import type { Access, Credential } from '../../access/access.ts'
import { type Identity, nobody } from '../../core/access/identity.ts'
import type { Permission } from '../../core/access/permissions.ts'
import { KnownError } from '../../errors.ts'
import { type Caller, createCaller, readClientAddress } from './caller.ts'
import { readCredential } from './credentials.ts'
import { type Authorize, requireRead } from './permission.ts'

export type AuthorizeOptions = Readonly<{ access: () => Access; isReadOnly: boolean }>

/** Requires a credential whose user has the permission. Used with `access: keys`. */
export function createAuthorize({ access, isReadOnly }: AuthorizeOptions): Authorize {
  return (permission, request) => {
    // Answers without the store: for health checks, and while the store cannot be reached.
    if (permission === 'public') return createCaller(nobody, request)
    const credential = readCredential(request)
    const identity = access().identify(credential, readClientAddress(request.raw))
    const admit = (found: Identity): Caller => {
      const caller = createCaller(found, request)
      if (!caller.maySomewhere(permission)) throw refuse(permission, caller, credential)
      if (isReadOnly) requireRead(permission, request)
      return caller
    }
    return identity instanceof Promise ? identity.then(admit) : admit(identity)
  }
}

function refuse(permission: Permission, { name }: Caller, { kind }: Credential): KnownError {
  if (kind === 'none') {
    return new KnownError(
      'CREDENTIAL_MISSING',
      `this request needs a credential with the permission ${permission}`,
    )
  }
  return new KnownError('ACCESS_DENIED', `user ${name} lacks the permission ${permission}`)
}
