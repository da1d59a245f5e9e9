import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  type CampaignId,
  type GroupId,
  type ItemId,
  type LetterId,
  parseLetterId,
  type QueueName,
  toRootId,
} from './ids.ts'

describe('ids', () => {
  it('the id of one thing is not accepted as the id of another, but a plain text is accepted', () => {
    expectTypeOf<ItemId>().not.toExtend<LetterId>()
    expectTypeOf<LetterId>().not.toExtend<CampaignId>()
    expectTypeOf<CampaignId>().not.toExtend<ItemId>()
    expectTypeOf<QueueName>().not.toExtend<ItemId>()
    expectTypeOf<string>().toExtend<LetterId>()
    expectTypeOf<number>().toExtend<GroupId>()
    expectTypeOf<LetterId>().toExtend<string>()
  })

  it('the root id of a new item is its id', () => {
    expect(toRootId('0ujtsYcgvSTl8PAuAdqWYSMnLOv')).toBe('0ujtsYcgvSTl8PAuAdqWYSMnLOv')
  })

  it('a letter id has 27 base62 digits', () => {
    expect(parseLetterId('0ujtsYcgvSTl8PAuAdqWYSMnLOv')).toBe('0ujtsYcgvSTl8PAuAdqWYSMnLOv')
    expect(parseLetterId('0ujtsYcgvSTl8PAuAdqWYSMnLO!')).toBeUndefined()
    expect(parseLetterId('0669f7ef-b5a1-cd34-b5f9-9d1154fb6853')).toBeUndefined()
  })
})
