import { readFileSync } from 'node:fs'

/** The version of the package. Its file is one folder above both `src` and `dist`. */
export const version: string = readVersion(new URL('../package.json', import.meta.url))

function readVersion(url: URL): string {
  const parsed = JSON.parse(readFileSync(url, 'utf8')) as { version: string }
  return parsed.version
}
