import type { Client, Health, ServerInfo } from '@redrive/client'
import { useEffect, useState } from 'react'

export type ServerStatus =
  | Readonly<{ kind: 'asking' }>
  | Readonly<{ kind: 'answered'; info: ServerInfo; health: Health }>
  | Readonly<{ kind: 'silent'; reason: string }>

const everyMs = 5_000

/** What the server says about itself, asked again every few seconds while the page is open. */
export function useServerStatus(client: Client): ServerStatus {
  const [status, setStatus] = useState<ServerStatus>({ kind: 'asking' })

  useEffect(() => {
    const closing = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async (): Promise<void> => {
      const next = await askServer(client, closing.signal)
      if (closing.signal.aborted) return
      setStatus(next)
      timer = setTimeout(ask, everyMs)
    }
    void ask()
    return () => {
      closing.abort()
      clearTimeout(timer)
    }
  }, [client])

  return status
}

async function askServer(client: Client, signal: AbortSignal): Promise<ServerStatus> {
  try {
    const [info, health] = await Promise.all([client.getInfo({ signal }), client.getHealth({ signal })])
    return { kind: 'answered', info, health }
  } catch (error) {
    return { kind: 'silent', reason: error instanceof Error ? error.message : String(error) }
  }
}
