/**
 * Keeps errors of connections to Kafka from ending the process. Every request that fails gets its error.
 * Beside that, the connections of the client emit an `error` event, and Node ends a process if nobody listens
 * for one. The client itself listens for the first error of a connection only. A connection that is reset
 * during a login has two.
 */
import { instancesChannel } from '@platformatic/kafka'

type Created = Readonly<{ type: string; instance: NodeJS.EventEmitter }>

const listenForErrors = (message: unknown): void => {
  const { type, instance } = message as Created
  if (type === 'connection') instance.on('error', () => {})
}
let isListening = false

/** Has to be called before the first connection is created. */
export function ignoreConnectionErrors(): void {
  if (isListening) return
  isListening = true
  instancesChannel.subscribe(listenForErrors)
}
