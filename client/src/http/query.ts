/**
 * Builds a URL query including its question mark. A list repeats its name; undefined and null are omitted.
 */
export function toQueryString(values: object): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    for (const element of Array.isArray(value) ? value : [value]) {
      if (element !== undefined && element !== null) query.append(name, String(element))
    }
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
