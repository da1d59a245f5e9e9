import { expect, it } from 'vitest'
import { parseFormat } from './format.ts'

it.each([
  [undefined, 'json'],
  ['', 'json'],
  ['application/json', 'json'],
  [' Application/JSON ; charset=utf-8', 'json'],
  ['application/*', 'json'],
  ['*/*;q=0.8', 'json'],
  ['application/protobuf', 'protobuf'],
  ['APPLICATION/PROTOBUF,application/json', 'protobuf'],
  ['application/protobuf;v=1', 'protobuf'],
  ['text/plain', undefined],
  ['application/jsonx', undefined],
  ['text/html, application/json', undefined],
])('a header %j selects the format %j', (header, format) => {
  expect(parseFormat(header)).toBe(format)
})
