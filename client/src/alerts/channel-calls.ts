/** Calls for the channels of alerts (`/api/v1/alerts/channels`). */
import type { Caller, CallOptions } from '../http/caller.ts'
import type { AuditedOptions } from '../queues/admin-calls.ts'
import type { AlertChannel, AlertChannelTest, NewAlertChannel } from './channel-wire.ts'

export interface AlertChannelCalls {
  listAlertChannels(options?: CallOptions): Promise<readonly AlertChannel[]>
  getAlertChannel(name: string, options?: CallOptions): Promise<AlertChannel>
  /** Creates or replaces a channel. Secret fields that are left out keep their values. */
  putAlertChannel(name: string, channel: NewAlertChannel, options?: AuditedOptions): Promise<AlertChannel>
  deleteAlertChannel(name: string, options?: AuditedOptions): Promise<void>
  /** Sends a test message now. Never repeated. */
  testAlertChannel(name: string, options?: CallOptions): Promise<AlertChannelTest>
}

export function createAlertChannelCalls(call: Caller): AlertChannelCalls {
  const send = async <T>(
    method: 'GET' | 'PUT' | 'POST' | 'DELETE',
    name: string | null,
    body: object | undefined,
    options: CallOptions | undefined,
  ): Promise<T> => {
    const path = `/api/v1/alerts/channels${name === null ? '' : `/${name}`}`
    const isRepeatable = method === 'GET' || method === 'PUT'
    const request = { method, path, isRepeatable, ...(body !== undefined && { body }) } as const
    return (await call(request, options)).body as T
  }
  const part = encodeURIComponent
  return {
    listAlertChannels: async (options) =>
      (await send<{ channels: readonly AlertChannel[] }>('GET', null, undefined, options)).channels,
    getAlertChannel: (name, options) => send('GET', part(name), undefined, options),
    putAlertChannel: (name, channel, { reason, ...options } = {}) =>
      send('PUT', part(name), { ...channel, reason }, options),
    deleteAlertChannel: async (name, { reason, ...options } = {}) => {
      await send('DELETE', part(name), { reason }, options)
    },
    testAlertChannel: (name, options) => send('POST', `${part(name)}/test`, {}, options),
  }
}
