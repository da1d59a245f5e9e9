import { Secret } from './secret.ts'

/** Where to read a secret. A text without the prefix of a reference is the secret itself. */
export type SecretReference =
  | Readonly<{ kind: 'itself' }>
  | Readonly<{ kind: 'file'; path: string }>
  | Readonly<{ kind: 'env'; name: string }>
  | Readonly<{ kind: 'vault'; path: string; key: string }>

/** Returns undefined for an invalid reference and for an empty text. */
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

/** Returns a reference as it is, and a mask for the secret itself. */
export function showReference(secret: Secret): string {
  const text = secret.reveal()
  const kind = parseReference(text)?.kind
  return kind === undefined || kind === 'itself' ? String(secret) : text
}

/** Returns the secret of a setting for certificates or keys: as in libpq, any other text is a path. */
export function parsePemReference(text: string): Secret {
  const isPath = parseReference(text)?.kind === 'itself' && !isPemText(text)
  return new Secret(isPath ? `file:${text}` : text)
}

/** Returns a path or a reference as it is, and a mask for PEM text. */
export function showPemReference(text: string): string {
  return isPemText(text) ? String(new Secret(text)) : text
}

function isPemText(text: string): boolean {
  return text.includes('-----BEGIN')
}
