import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { encodeBytes, encodeInt4s, encodeInt8s, encodeTexts } from './encode-arrays.ts'

const postgres = await requireService('postgres')

describe('arrays in the binary format', needs(postgres), () => {
  it('an array of texts, bytes, numbers or nulls, or an empty one, arrives unchanged', async () => {
    const client = new Client({ connectionString: postgres.url })
    await client.connect()
    try {
      const strings = ['', 'a', null, '“注文” 🧾', 'quote " back\\slash {,}']
      const data = [new Uint8Array([0, 255, 10]), null, new Uint8Array()]
      const large = [0, -1, null, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 32, -(2 ** 32)]
      const { rows } = await client.query(
        `select to_json($1::text[]) as strings, to_json($2::bytea[]) as data, $3::int8[]::text as large,
           to_json($4::int4[]) as small, cardinality($5::text[]) as none`,
        [
          encodeTexts(strings),
          encodeBytes(data),
          encodeInt8s(large),
          encodeInt4s([1, null, -(2 ** 31)]),
          encodeTexts([]),
        ],
      )
      expect(rows).toEqual([
        {
          strings,
          data: ['\\x00ff0a', null, '\\x'],
          large: `{${large.map((value) => value ?? 'NULL').join(',')}}`,
          small: [1, null, -(2 ** 31)],
          none: 0,
        },
      ])
    } finally {
      await client.end()
    }
  })
})
