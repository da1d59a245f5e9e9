/** For pages that load only files of this server. */
export const pageHeaders = {
  'Content-Security-Policy': formatPolicy({}),
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
} as const

/** Swagger UI sets styles on its elements and has its icons in data: URLs. */
export const docsHeaders = {
  ...pageHeaders,
  'Content-Security-Policy': formatPolicy({ 'style-src': "'self' 'unsafe-inline'" }),
} as const

function formatPolicy(over: Readonly<Record<string, string>>): string {
  const directives = {
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': "'self' data:",
    'font-src': "'self'",
    'connect-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    ...over,
  }
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ')
}
