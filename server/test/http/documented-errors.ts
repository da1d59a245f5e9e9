/** Compares the errors that tests receive with the errors that the OpenAPI document lists. */
import { listAnsweredErrors } from '../../src/api/http/openapi/error-responses.ts'
import { routes } from '../../src/api/routes.ts'

const patterns = routes
  .map((row) => ({
    row,
    pattern: new RegExp(`^${row.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]*')}$`),
    // Static segments win over parameters.
    order: row.path.replaceAll(/\{\w+\}/g, '\u{10ffff}'),
  }))
  .toSorted((a, b) => (a.order < b.order ? -1 : 1))

/** Throws if the route of a request does not document the code of its error. */
export function checkDocumentedError(method: string, url: string, status: number, code: unknown): void {
  const path = new URL(url).pathname
  const found = patterns.find(({ pattern }) => pattern.test(path))
  const row = routes.find((each) => each.path === found?.row.path && each.method === method)
  if (row === undefined) return
  const isListed = listAnsweredErrors(row).some(
    (error) => error.status === status && error.wireCode === String(code),
  )
  if (!isListed) throw new Error(`${method} ${row.path} does not document its error ${status} ${code}`)
}
