import { readFileSync } from 'node:fs'

/** The version of the package. The file lies one folder up, seen from `src` and from `dist` alike. */
export const version: string = readVersion(new URL('../package.json', import.meta.url))

function readVersion(url: URL): string {
  const parsed = JSON.parse(readFileSync(url, 'utf8')) as { version: string }
  return parsed.version
}
