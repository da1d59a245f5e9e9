import { Type } from 'typebox'
import { usPerMs } from '../../../core/time/instant.ts'
import { readTrace, traceRequestHeaders } from '../../http/read-trace.ts'
import { runInQueue } from '../checks/lookup.ts'
import { checkNoNul } from '../checks/names.ts'
import {
  checkTimeoutGiven,
  checkTimeoutMax,
  checkTimeoutMin,
  parseRequestTimeout,
  toMs,
} from '../checks/request-timeout.ts'
import { bodyBytesMax } from '../limits.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { type ProduceBody, type ProducedItem, produceBody } from './produce-body.ts'

/** An item that is due within this time is queued immediately instead of scheduled. */
export const scheduledFromUs = 100 * usPerMs

export const produceRoute = queueRoute({
  path: '/v1/queue.produce',
  permission: 'queue.produce',
  summary: 'Adds items to a queue. Answers when all of them are stored durably, in order, in one partition.',
  bodyBytesMax: bodyBytesMax.produce,
  isHot: true,
  slowMs: Number.POSITIVE_INFINITY,
  request: produceBody,
  headers: Type.Object(traceRequestHeaders),
  handle: async (body, { engine, context, request }) => {
    const { produceItemsMax } = context.queueLimits
    let timeoutUs = 0
    const check = () => {
      timeoutUs = checkTimeout(body)
      checkItems(body, produceItemsMax)
    }
    await runInQueue(engine, body, check, () => {
      clearPastTimes(body.items, context.clock.now() + scheduledFromUs)
      const trace = readTrace(request)
      const options = { timeoutMs: toMs(timeoutUs) }
      return engine.produce(body.queueName, body.items, trace === undefined ? options : { ...options, trace })
    })
    return undefined
  },
})

function checkTimeout({ requestTimeout }: ProduceBody): number {
  const timeoutUs = parseRequestTimeout(requestTimeout)
  checkTimeoutGiven(timeoutUs)
  checkTimeoutMax(timeoutUs, requestTimeout, false)
  checkTimeoutMin(timeoutUs, requestTimeout)
  return timeoutUs
}

function checkItems({ items, itemCount }: ProduceBody, itemsMax: number): void {
  if (itemCount === 0) throw createBadRequest('items cannot be empty; at least one item is required')
  if (itemCount > itemsMax) {
    throw createBadRequest(
      `items is invalid; max_produce_batch_size is ${itemsMax} but received ${itemCount}`,
    )
  }
  for (const item of items) {
    checkNoNul('kind', item.kind)
    checkNoNul('encoding', item.encoding)
    checkNoNul('reference', item.reference)
  }
}

function clearPastTimes(items: readonly ProducedItem[], from: number): void {
  for (const item of items) if (item.availableAt !== null && item.availableAt <= from) item.availableAt = null
}
