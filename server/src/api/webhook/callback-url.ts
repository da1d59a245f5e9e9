import { systemNamespace } from '../../core/items/queue.ts'
import { redactUrl } from '../../core/redaction/redaction.ts'
import type { Caller } from '../http/caller.ts'
import { mayReadContent } from '../http/content-permission.ts'

/** The address of a receiver can be a secret: many receivers have a key in the path. */
export function isCallbackUrlShown(caller: Caller): boolean {
  return caller.may('webhook.write', systemNamespace) || mayReadContent(caller, systemNamespace)
}

export function hideCallbackUrl<C extends Readonly<{ callbackUrl: string }>>(caller: Caller, consumer: C): C {
  if (isCallbackUrlShown(caller)) return consumer
  return { ...consumer, callbackUrl: redactUrl(consumer.callbackUrl) }
}
