import { describe, expect, it } from 'vitest'
import { noon } from '../../../../test/make.ts'
import type { Command } from '../../contract/storage.ts'
import { checkCommand } from './check-command.ts'

const refused: readonly Readonly<{ what: string; command: Command; message: RegExp }>[] = [
  {
    what: 'an actor with a NUL character',
    command: { op: 'redrive', letters: [], isDeadAllowed: false, isCapped: false, actor: 'a\0', now: noon },
    message: /actor contains a NUL/,
  },
  {
    what: 'a number of an edited version below 1',
    command: {
      op: 'redrive',
      letters: [{ letterId: 'a', queue: null, edit: 0 }],
      isDeadAllowed: false,
      isCapped: false,
      actor: '',
      now: noon,
    },
    message: /edit is 0; it must be a whole number from 1/,
  },
  {
    what: 'a position that is not a whole number',
    command: {
      op: 'discard',
      letters: [{ letterId: 'a', campaign: { id: 'c', position: 1.5 } }],
      reason: '',
      now: noon,
    },
    message: /campaign\.position is 1\.5/,
  },
  {
    what: 'a reason with an unpaired surrogate',
    command: { op: 'discard', letters: [], reason: '\ud800', now: noon },
    message: /reason contains an unpaired surrogate/,
  },
  {
    what: 'an empty campaign id',
    command: { op: 'put-campaign', id: '', version: 0, state: 'running', document: {} },
    message: /id of a campaign cannot be empty/,
  },
  {
    what: 'a search limit of 0',
    command: { op: 'freeze-letters', campaignId: 'c', filter: {}, countMax: 1, examinedMax: 0 },
    message: /examinedMax is 0/,
  },
  {
    what: 'a filter with a NUL character',
    command: {
      op: 'freeze-letters',
      campaignId: 'c',
      filter: { errorCodes: ['\0'] },
      countMax: 1,
      examinedMax: 1,
    },
    message: /errorCodes contains a NUL/,
  },
  {
    what: 'a time that is not a number',
    command: { op: 'purge-archive', queue: 'q', archivedBefore: Number.NaN, countMax: 1 },
    message: /archivedBefore is NaN/,
  },
]

describe('the check of a command about letters or campaigns', () => {
  it.each(refused)('a command with $what is refused', ({ command, message }) => {
    expect(() => checkCommand(command)).toThrow(message)
  })

  it('a valid command is accepted', () => {
    const campaign = { id: 'c', position: 0 }
    checkCommand({ op: 'discard', letters: [{ letterId: 'a', campaign }], reason: 'spam', now: noon })
  })
})
