/**
 * The life of one order: produced, failed by a worker, kept as a dead letter, redriven by a person after the
 * defect is fixed, processed, and RESOLVED.
 *
 *     REDRIVE_URL=http://127.0.0.1:8080 node main.ts
 */
import { createClient, Dead } from '@redrive/client'

const { REDRIVE_URL = 'http://127.0.0.1:8080', REDRIVE_API_KEY, QUEUE = 'example-orders' } = process.env
const client = createClient({
  url: REDRIVE_URL,
  ...(REDRIVE_API_KEY !== undefined && { apiKey: REDRIVE_API_KEY }),
})
const deadQueue = `${QUEUE}-dead`

type Order = Readonly<{ id: number; country: string }>

/** The tax rates by country. The first order fails, because its country is missing. */
const taxes = new Map([['DE', 19]])

/** Replace this with your own work. It can run twice for one item, so it must be idempotent. */
function processOrder({ id, country }: Order): void {
  const tax = taxes.get(country)
  // No retry can help: the item becomes a dead letter now, instead of after all of its attempts.
  if (tax === undefined) throw new Dead(`no tax rate for ${country}`, { errorCode: 'tax_rate_missing' })
  console.log(`order ${id} processed, ${tax} % tax`)
}

await client.createQueue({ name: deadQueue }).catch(ignoreExisting)
await client.createQueue({ name: QUEUE, policy: { deadQueue } }).catch(ignoreExisting)

const worker = client.work(QUEUE, async (item) => processOrder(item.json<Order>()), { concurrency: 4 })
process.once('SIGTERM', () => worker.stop())

await client.produce(QUEUE, JSON.stringify({ id: 4711, country: 'FR' } satisfies Order))

const letter = await waitForLetter(({ status }) => status === 'PENDING')
console.log(`order is a dead letter: ${letter.failure?.message}`)

// A person fixes the defect, looks at the letter in the dashboard, and redrives it.
taxes.set('FR', 20)
await client.redriveLetter(letter.id, { reason: 'the tax rate of France was missing' })

const { status, requeue_count } = await waitForLetter(
  ({ id, status }) => id === letter.id && status === 'RESOLVED',
)
console.log(`letter is ${status} after ${requeue_count} redrive`)
await worker.stop()

/** Asks until a letter of the dead queue matches. A program for operators would use a filter instead. */
async function waitForLetter(matches: (letter: Listed) => boolean): Promise<Listed> {
  for (;;) {
    const { letters } = await client.listLetters({ queue: deadQueue })
    const found = letters.find(matches)
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

type Listed = Awaited<ReturnType<typeof client.listLetters>>['letters'][number]

/** The program can be run again. */
function ignoreExisting(error: unknown): void {
  if ((error as { code?: string }).code !== 'QUEUE_EXISTS') throw error
}
