import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { hour, minute, newItems, noon } from '../../../test/make.ts'
import { run, testDatabase } from '../../../test/postgres.ts'

const postgres = await requireService('postgres')

/**
 * Somebody changes a row (extends its lease) and has not committed yet when the command comes. The
 * command waits for the row, and must then take it as it has become, not as it was nor for gone.
 */
describe('an item that is being changed while a command waits for it', needs(postgres), () => {
  it.each(['complete', 'retry', 'delete', 'clear', 'extend'] as const)(
    'is still there for %s',
    async (op) => {
      await using database = await testDatabase()
      const storage = await database.open()
      const at = { queue: 'orders', partition: 0 } as const
      await run(storage, { op: 'create-queue', queue: { name: 'orders' }, now: noon })
      const { ids } = await run(storage, { op: 'produce', ...at, items: newItems(1), now: noon })
      await run(storage, { op: 'lease', ...at, holders: ['w'], now: noon })
      const other = await database.connect()
      await other.query('begin')
      await other.query(
        `update redrive.items_live set lease_deadline = lease_deadline, updated_at = updated_at + 1`,
      )

      const [id = ''] = ids
      const items = [{ id, availableAt: null, isDead: false, error: null }]
      const states = { isWaiting: false, isScheduled: false, isLeased: true }
      const commands = {
        complete: { op: 'complete', ...at, ids, now: noon + minute },
        retry: { op: 'retry', ...at, items, now: noon + minute },
        extend: { op: 'extend', ...at, ids, deadline: noon + hour, now: noon + minute },
        delete: { op: 'delete', ...at, ids },
        clear: { op: 'clear', queue: 'orders', ...states, countMax: 10 },
      } as const
      const done = run(storage, commands[op])
      await expect
        .poll(() =>
          database.rows(`select from pg_stat_activity where application_name = 'redrive' and wait_event_type = 'Lock'
        and datname = current_database()`),
        )
        .toHaveLength(1)
      await other.query('commit')
      expect(await done).toMatchObject(
        op === 'delete' || op === 'clear' ? { removed: 1 } : { isSettled: true },
      )
      expect(await storage.verify()).toEqual([])
    },
  )
})
