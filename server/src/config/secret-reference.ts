import type { Secret } from './secret.ts'

/** Where a secret is to be read. Anything that does not start like a reference is the secret itself. */
export type SecretReference =
  | Readonly<{ kind: 'itself' }>
  | Readonly<{ kind: 'file'; path: string }>
  | Readonly<{ kind: 'env'; name: string }>
  | Readonly<{ kind: 'vault'; path: string; key: string }>

/** Undefined for what starts like a reference and is not one, and for nothing at all. */
export function parseReference(text: string): SecretReference | undefined {
  if (text.trim() === '') return undefined
  const [, kind, rest = ''] = /^(file|env|vault):(.*)$/s.exec(text) ?? []
  switch (kind) {
    case 'file':
      return rest === '' ? undefined : { kind, path: rest.replace(/^\/\/\//, '/') }
    case 'env':
      return /^\w+$/.test(rest) ? { kind, name: rest } : undefined
    case 'vault': {
      const [, path, key] = /^\/?([^#\s]+\/[^#\s]+)#(.+)$/.exec(rest) ?? []
      return path === undefined || key === undefined ? undefined : { kind, path, key }
    }
    default:
      return { kind: 'itself' }
  }
}

/** A reference may be seen; the secret itself never. */
export function showReference(secret: Secret): string {
  const text = secret.reveal()
  const kind = parseReference(text)?.kind
  return kind === undefined || kind === 'itself' ? String(secret) : text
}
