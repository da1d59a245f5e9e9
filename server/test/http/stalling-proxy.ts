import { connect, createServer, type Socket } from 'node:net'
import { afterEach } from 'vitest'

export type StallingProxy = Readonly<{
  /** The URL of the database, through the proxy. */
  url: string
  /**
   * From now on nothing passes through the connections that are open: as after a network failure, neither
   * side is notified. `new`: nothing passes through new connections either.
   */
  stall(which: 'open' | 'open and new'): void
  /** New connections work again. Stalled connections are closed. */
  resume(): void
}>

const cleanups: (() => void)[] = []

/** Starts a proxy between a server and its PostgreSQL. */
export async function startStallingProxy(databaseUrl: string): Promise<StallingProxy> {
  const target = new URL(databaseUrl)
  const open = new Set<readonly [Socket, Socket]>()
  const stalled = new Set<readonly [Socket, Socket]>()
  let isStallingNew = false
  const stallPair = (pair: readonly [Socket, Socket]): void => {
    stalled.add(pair)
    for (const socket of pair) socket.removeAllListeners('data').pause()
  }
  const proxy = createServer((incoming) => {
    const outgoing = connect(Number(target.port || 5432), target.hostname)
    const pair = [incoming, outgoing] as const
    open.add(pair)
    const close = (): void => {
      // A stalled connection stays open on the other side.
      if (stalled.has(pair)) return
      open.delete(pair)
      incoming.destroy()
      outgoing.destroy()
    }
    for (const socket of pair) socket.on('error', () => {}).on('close', close)
    incoming.on('data', (chunk) => void outgoing.write(chunk))
    outgoing.on('data', (chunk) => void incoming.write(chunk))
    if (isStallingNew) stallPair(pair)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => {
    for (const pair of open) for (const socket of pair) socket.destroy()
    proxy.close()
  })
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((proxy.address() as { port: number }).port)
  return {
    url: url.href,
    stall: (which) => {
      isStallingNew = which === 'open and new'
      for (const pair of open) stallPair(pair)
    },
    resume: () => {
      isStallingNew = false
      for (const pair of stalled) for (const socket of pair) socket.destroy()
      stalled.clear()
    },
  }
}

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})
