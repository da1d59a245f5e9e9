/** Reports a download before it starts, so that a user who watches the run knows why it pauses. */
export function announce(activity: string): void {
  process.stderr.write(`services: ${activity} (first time only) …\n`)
}
