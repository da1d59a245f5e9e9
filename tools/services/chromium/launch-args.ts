/**
 * Arguments that let Chromium start as root, and keep it from any network traffic besides the tested page.
 */
export function chromiumLaunchArgs(): readonly string[] {
  return [
    // Chromium refuses to run its sandbox as root. Tests open only pages of this project.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
}
