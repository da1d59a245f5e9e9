/** Tells whoever watches the run why nothing moves: said only before downloads, which come once. */
export function announce(what: string): void {
  process.stderr.write(`services: ${what} (first time only) …\n`)
}
