import type { Caller, CallOptions } from '../http/caller.ts'
import type { SendHeartbeat, WorkerHeartbeat } from './heartbeat.ts'

export type SentHeartbeat = WorkerHeartbeat & Readonly<{ namespace?: string | undefined }>

export interface HeartbeatCalls {
  /**
   * Reports the state of up to 1,000 workers. Not repeated by default, because the next heartbeat follows
   * soon.
   */
  sendHeartbeats(heartbeats: readonly SentHeartbeat[], options?: CallOptions): Promise<void>
}

export function createHeartbeatCalls(caller: Caller): HeartbeatCalls {
  return {
    sendHeartbeats: async (heartbeats, options) => {
      const body = { heartbeats: heartbeats.map(toWire) }
      const request = { method: 'POST', path: '/api/v1/workers/heartbeat', body, isRepeatable: true } as const
      await caller(request, { retriesMax: 0, ...options })
    },
  }
}

function toWire(heartbeat: SentHeartbeat) {
  const { type, instanceId, namespace, timestamp, status } = heartbeat
  return {
    type,
    instance_id: instanceId,
    ...(namespace !== undefined && { namespace }),
    timestamp,
    status,
    last_message_at: heartbeat.lastMessageAt,
    consumer_lag: heartbeat.consumerLag,
    retry_counts: heartbeat.retryCounts,
  }
}

/** Sends heartbeats to the server of the client. */
export function sendToServer(
  client: HeartbeatCalls,
  { namespace }: Readonly<{ namespace?: string }> = {},
): SendHeartbeat {
  return (heartbeat, signal) => client.sendHeartbeats([{ ...heartbeat, namespace }], { signal })
}
