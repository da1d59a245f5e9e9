/** The query of a URL, with its question mark. Lists are repeated names; what is undefined is left out. */
export function queryOf(values: object): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) query.append(name, String(one))
    }
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
