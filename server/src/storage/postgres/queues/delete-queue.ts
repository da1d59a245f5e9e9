import type { DeleteQueue } from '../../contract/queues.ts'
import { queueEntries, removalDetails } from '../../shared/audit-entries.ts'
import { queueInUse } from '../../shared/queue-checks.ts'
import { insertEntries } from '../audit/audit.ts'
import type { Row } from '../connection/connection.ts'
import { dropSums } from '../counts/letter-count-rollups.ts'
import { checkNoGuardedLetters, countLettersByState } from '../items/remove.ts'
import { stateCodes } from '../items/rows.ts'
import { endWhatIsGone, goneColumns } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import { findDeadQueueUser } from './queues.ts'

export async function deleteQueue(
  transaction: Transaction,
  command: DeleteQueue,
): Promise<{ removed: number }> {
  const queueRow = await transaction.get(command.name)
  const { id } = queueRow
  const user = await findDeadQueueUser(transaction, command.name)
  if (user !== undefined) throw queueInUse(command.name, user)
  const run = async (text: string) => (await transaction.connection.query({ text, isLong: true }, [id]))[0]
  // Millions of letters may go with it.
  await transaction.connection.query({ text: 'set local statement_timeout = 0' })
  // The partitions first: from here on nobody can put anything into the queue. The queue's own row
  // last: whoever waits for it holds no lock that this waits for.
  await run(`select from redrive.partitions where queue_id = $1 order by partition for update`)
  const { waiting, scheduled, leased, dead } = stateCodes
  if (command.isForced !== true)
    await checkNoGuardedLetters(transaction, queueRow, [waiting, scheduled, leased, dead])
  const gone = await transaction.connection.query(
    {
      text: `with gone as (delete from redrive.items where queue_id = $1 returning ${goneColumns.join(', ')})
        select count(*) as removed, ${goneColumns.map((name) => `null as ${name}`).join(', ')} from gone
        union all select null, letter_id, redrives::text, state::text, letter from gone
        where (letter_id is not null and state <= 2) or (letter is not null and state = 2)`,
      isLong: true,
    },
    [id],
  )
  const [sum, ...rows] = gone.map((row) => ({
    ...row,
    redrives: Number(row.redrives),
    state: Number(row.state),
  }))
  const { removed } = sum as Row
  await endWhatIsGone(transaction, rows, transaction.now())
  // All of its letters are locked by their deletion: nobody changes their counts any more.
  await transaction.flushLetters()
  const letters = await transaction.connection.query({ text: countByState }, [id])
  const archived = (await run(purgeArchive))?.n as number
  const details = {
    ...removalDetails(removed as number, countLettersByState(letters)),
    ...(archived > 0 && { archived }),
  }
  await insertEntries(transaction.connection, queueEntries(command.trace, command.name, 1, details))
  await dropSums(transaction.connection, id, transaction.slot)
  for (const table of ['counts', 'letter_counts', 'open_letters', 'group_hours', 'groups', 'letter_edits']) {
    await run(`delete from redrive.${table} where queue_id = $1`)
  }
  await run('delete from redrive.produce_keys where queue_id = $1')
  await run('delete from redrive.lease_ends where queue_id = $1')
  await run('delete from redrive.partitions where queue_id = $1')
  await run('delete from redrive.queues where id = $1')
  transaction.tally.drop(id)
  transaction.setChanged(command.name, undefined)
  return { removed: removed as number }
}

const countByState = `select c.state, sum(c.n)::int8 as n from redrive.letter_sums c where c.queue_id = $1
  group by c.state having sum(c.n) <> 0`
const purgeArchive = `with gone as (delete from redrive.archive where queue_id = $1 returning 1)
  select count(*) as n from gone`
