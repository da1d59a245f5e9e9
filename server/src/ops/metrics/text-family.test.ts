import { Gauge, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { renderFamily } from './text-family.ts'

describe('a metric that is rendered as text', () => {
  it('the text is the one of the library, also for labels that need an escape', async () => {
    const names = ['plain', 'quote"', 'back\\slash', 'line\nbreak', 'end\\', 'ünïcode', '{a="b"}']
    const registry = new Registry()
    const gauge = new Gauge({
      name: 'g',
      help: 'a \\ and\na line',
      labelNames: ['a', 'b'],
      registers: [registry],
    })
    for (const [at, name] of names.entries()) gauge.set({ a: name, b: 'x' }, at / 3)
    const series = names.map((name, at) => ({ labels: [name, 'x'], value: at / 3 }))
    const family = { name: 'g', help: 'a \\ and\na line', type: 'gauge', labelNames: ['a', 'b'] } as const
    expect(renderFamily(family, series)).toBe(await registry.metrics())
  })
})
