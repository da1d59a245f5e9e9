import { type Static, Type } from 'typebox'
import type { Consumer, JobStateName } from '../../storage/contract/webhooks.ts'
import type { Caller } from '../http/caller.ts'
import { component } from '../http/openapi/annotations.ts'
import { formatInstant } from '../http/wire/wire-time.ts'
import { hideCallbackUrl } from './callback-url.ts'
import { consumerPath } from './entities.ts'

const statusNames = { queued: 'QUEUED', inflight: 'INFLIGHT', delivered: 'DELIVERED', dead: 'DEAD' } as const
export const statusCodes = { queued: 1001, inflight: 1002, delivered: 1003, dead: 1004 } as const

export type StatusName = (typeof statusNames)[JobStateName]
export const StatusName = Type.Enum(Object.values(statusNames), { description: 'State of the job.' })

export function toStatusName(state: JobStateName): StatusName {
  return statusNames[state]
}

export const jobFields = {
  ListenerEndpoint: Type.String({ description: 'Callback URL of the consumer.' }),
  ListenerName: Type.String({ description: 'Name of the consumer.' }),
  Status: StatusName,
  StatusChangedAt: Type.String({ format: 'date-time', description: 'Time of the last change of state.' }),
}
export const JobView = component('WebhookJob', Type.Object(jobFields))

export function viewJob(
  caller: Caller,
  consumer: Consumer,
  state: JobStateName,
  changedAt: number,
): Static<typeof JobView> {
  const { callbackUrl, name } = hideCallbackUrl(caller, consumer)
  return {
    ListenerEndpoint: callbackUrl,
    ListenerName: name,
    Status: statusNames[state],
    StatusChangedAt: formatInstant(changedAt),
  }
}

export function requeuePath({ channelId, id }: Consumer, jobId: string): string {
  return `${consumerPath(channelId, id)}/job/${jobId}/requeue-dead-job`
}
