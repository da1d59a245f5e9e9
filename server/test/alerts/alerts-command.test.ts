import { expect, it } from 'vitest'
import type { Context } from '../../src/cli/context.ts'
import { run } from '../../src/cli/run.ts'
import { createEnvelope, describeLettersServers } from '../letters-api/servers.ts'

describeLettersServers('the commands for alerts', (api) => {
  const redrive = async (...words: readonly string[]) => {
    const printed: string[] = []
    const reported: string[] = []
    const context: Context = {
      environment: { REDRIVE_SERVER: api.url },
      folder: '/',
      print: (line) => void printed.push(line),
      report: (line) => void reported.push(line),
    }
    const exitCode = await run(['alerts', ...words], context)
    return { exitCode, printed, reported: reported.join('\n') }
  }

  it('an operator lists alerts, and acknowledges, mutes and resolves one', async () => {
    const { queue, dead } = await api.createQueues({ letter_class: 'financial' })
    await api.capture(dead, createEnvelope(queue))
    await api.setClock({ advance: '0s' })
    const listed = await redrive('list', '--queue', dead)
    expect(listed.printed).toHaveLength(2)
    expect(listed.printed[1]).toMatch(/ critical +firing .* DLQFinancial +dead queue .* has 1 letter/)
    const id = listed.printed[1]?.split(' ')[0] ?? ''
    expect((await redrive('acknowledge', id, '--note', 'mine')).reported).toContain('firing: dead queue')
    expect(await redrive('mute', id)).toMatchObject({
      reported: expect.stringContaining('--until is missing'),
    })
    expect((await redrive('mute', id, '--until', '2099-01-01T00:00:00Z')).exitCode).toBe(0)
    expect((await redrive('resolve', id, '--reason', 'known')).reported).toContain('resolved: dead queue')
    expect((await redrive('list', '--queue', dead)).reported).toContain('no alerts that match')
    const { printed } = await redrive('list', '--state', 'resolved', '--queue', dead, '--json')
    expect(JSON.parse(printed[0] ?? '').alerts).toMatchObject([
      { id, acknowledged: { note: 'mine' }, muted: { until: '2099-01-01T00:00:00.000000Z' } },
    ])
  })
})
