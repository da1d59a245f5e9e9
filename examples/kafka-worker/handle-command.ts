import { type KafkaRecord, type RecordContext, ValidationError } from '@redrive/client/kafka'

type Command = Readonly<{ event_id: string; event_type: string; deal_id: string | null; payload: unknown }>

/** Replace this with your own work. It can run twice for one record, so it must be idempotent. */
export async function handleCommand(
  worker: string,
  record: KafkaRecord,
  { attempt, signal }: RecordContext,
): Promise<void> {
  const command = readCommand(record)
  // A real worker passes the signal to its calls, so that they end when the partition moves.
  signal.throwIfAborted()
  console.log(`${worker}: ${command.event_type} ${command.event_id}, attempt ${attempt}`)
}

/** Throws errors that are not retried: the record stays wrong. */
function readCommand(record: KafkaRecord): Command {
  const command = record.json<Partial<Command> | null>()
  for (const field of ['event_id', 'event_type'] as const)
    if (typeof command?.[field] !== 'string') throw new ValidationError(`${field} is missing`)
  return command as Command
}
