/** What to launch Chromium with, so that it starts as root too and calls no one but the page under test. */
export function chromiumLaunchArgs(): readonly string[] {
  return [
    // Chromium refuses to run its sandbox as root. The pages it opens here are our own.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
}
