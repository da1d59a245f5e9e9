import { describe, expect, it } from 'vitest'
import { KnownError } from '../../errors.ts'
import type { Campaign } from '../letters.ts'
import { watchCampaign } from './watch.ts'

const at = (state: string, endedAt: number | null = null) => ({ state, endedAt }) as unknown as Campaign
const away = () => new KnownError('STORE_UNAVAILABLE', 'the store is away')

async function told(...answers: readonly (Campaign | null | Error)[]): Promise<string[]> {
  const left = [...answers]
  const get = async (): Promise<Campaign | null> => {
    const answer = left.shift()
    if (answer instanceof Error) throw answer
    return answer ?? null
  }
  const seen: string[] = []
  for await (const { state } of watchCampaign(get, async () => {}, new AbortController().signal)) {
    seen.push(state)
  }
  expect(left).toEqual([])
  return seen
}

describe('watching a campaign', () => {
  it('watching continues when the store is back and yields only states that changed', async () => {
    const running = at('running')
    expect(await told(running, away(), away(), running, away(), at('done', 1))).toEqual(['running', 'done'])
    const refused = new KnownError('STORE_REFUSED', 'the password is being replaced')
    expect(await told(refused, at('done', 1))).toEqual(['done'])
  })

  it('watching ends when the campaign ends or is deleted', async () => {
    expect(await told(at('running'), away(), null)).toEqual(['running'])
  })

  it('watching fails on errors that are not about the store', async () => {
    await expect(told(at('running'), new TypeError('a defect'))).rejects.toThrow('a defect')
  })
})
