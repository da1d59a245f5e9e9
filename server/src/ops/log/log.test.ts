import { describe, expect, it } from 'vitest'
import { createLogger, type LogOptions } from './log.ts'

function captureLines(
  options: Omit<LogOptions, 'destination'>,
  write: (log: ReturnType<typeof createLogger>) => void,
) {
  const lines: string[] = []
  const log = createLogger({ ...options, destination: { write: (line) => void lines.push(line) } })
  write(log)
  return lines
}

describe('the log', () => {
  it('the log has one JSON object per line, with the level as a word and the time in ISO 8601', () => {
    const [line] = captureLines({ level: 'info', isPretty: false }, (log) =>
      log.info({ queue: 'orders' }, 'created'),
    )
    expect(JSON.parse(line ?? '')).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      queue: 'orders',
      msg: 'created',
    })
  })

  it('the log leaves out lines below its level', () => {
    expect(captureLines({ level: 'warn', isPretty: false }, (log) => log.info('x'))).toEqual([])
  })

  it('the log does not show secrets', () => {
    const lines = captureLines({ level: 'info', isPretty: false }, (log) =>
      log.info({ headers: { authorization: 'Bearer abc' }, store: { password: 'abc' } }, 'x'),
    )
    expect(lines.join()).not.toContain('abc')
  })

  it('a pretty log shows a message with line breaks and colours in one line', () => {
    const [line] = captureLines({ level: 'info', isPretty: true }, (log) =>
      log.info({ path: 'a\nb' }, 'path /x\n[12:00:00] INFO: \u001b[31mforged does not exist'),
    )
    expect(line).toContain('path /x\\n[12:00:00] INFO: \\u001b[31mforged does not exist')
    expect(line).toContain('"a\\nb"')
  })

  it('the log shows the stack of an error and of its causes', () => {
    const error = new Error('outer', { cause: new Error('inner') })
    const [line] = captureLines({ level: 'info', isPretty: false }, (log) => log.error({ err: error }, 'x'))
    expect(JSON.parse(line ?? '').err).toMatchObject({ stack: expect.stringContaining('inner') })
  })
})
