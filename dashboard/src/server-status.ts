import type { Client, Health, ServerInfo } from '@redrive/client'
import { useEffect, useState } from 'react'

export type ServerStatus =
  | Readonly<{ kind: 'loading' }>
  | Readonly<{ kind: 'reachable'; info: ServerInfo; health: Health }>
  | Readonly<{ kind: 'unreachable'; reason: string }>

const pollMs = 5_000

/** Reads info and health of the server every few seconds while the page is open. */
export function useServerStatus(client: Client): ServerStatus {
  const [status, setStatus] = useState<ServerStatus>({ kind: 'loading' })

  useEffect(() => {
    const closing = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const poll = async (): Promise<void> => {
      const next = await readStatus(client, closing.signal)
      if (closing.signal.aborted) return
      setStatus(next)
      timer = setTimeout(poll, pollMs)
    }
    void poll()
    return () => {
      closing.abort()
      clearTimeout(timer)
    }
  }, [client])

  return status
}

async function readStatus(client: Client, signal: AbortSignal): Promise<ServerStatus> {
  try {
    const [info, health] = await Promise.all([client.getInfo({ signal }), client.getHealth({ signal })])
    return { kind: 'reachable', info, health }
  } catch (error) {
    return { kind: 'unreachable', reason: error instanceof Error ? error.message : String(error) }
  }
}
