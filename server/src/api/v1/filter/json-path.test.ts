import { describe, expect, it } from 'vitest'
import { parseJsonTest } from './json-path.ts'

describe('a JSON path with its value', () => {
  it.each([
    ['$.a=1', ['a'], { number: '1' }],
    ['$.a.b[0]["c"]=x', ['a', 'b', 0, 'c'], 'x'],
    ['$["unit price"]="12"', ['unit price'], '12'],
    ['$["a\\"b"]=null', ['a"b'], null],
    ['$[3]=true', [3], true],
    ['$.straße=über', ['straße'], 'über'],
    ['$.order-id=', ['order-id'], ''],
    ['$.url=a=b', ['url'], 'a=b'],
    ['$["a=b"].c=-1.5e3', ['a=b', 'c'], { number: '-1.5e3' }],
    ['$.a= 9007199254740993 ', ['a'], { number: '9007199254740993' }],
    ['$.a=1e400', ['a'], { number: '1e400' }],
    ['$.a=0x10', ['a'], '0x10'],
    ['$.a=Infinity', ['a'], 'Infinity'],
  ])('%s is read as a path and a value', (text, path, value) => {
    expect(parseJsonTest(text)).toEqual({ path, value })
  })

  it.each([
    ['', 'character 1'],
    ['a=1', 'character 1'],
    ['$=1', 'names no field'],
    ['$.a', 'has no value'],
    ['$..a=1', 'character 3'],
    ['$.a[*]=1', 'character 5'],
    ['$.a[-1]=1', 'character 5'],
    ["$['a']=1", 'character 3'],
    ['$["a=1', 'character 3'],
    ['$["\\x"]=1', 'JSON string'],
    ['$.a b=1', 'character 4'],
    ['$.a={"b":1}', 'an object or a list'],
    ['$.a="\\u0000"', 'NUL'],
    [`$${'.a'.repeat(33)}=1`, 'more than 32'],
  ])('%s is refused with the position or the problem', (text, problem) => {
    expect(parseJsonTest(text)).toEqual({ problem: expect.stringContaining(problem) })
  })

  // With quadratic time each of these would take minutes, and the test would time out.
  it.each(['["', '[', '.a', '\\"', '[1'])('a path of 100,000 times %s is refused in linear time', (part) => {
    expect(parseJsonTest(`$${part.repeat(100_000)}`)).toHaveProperty('problem')
  })
})
