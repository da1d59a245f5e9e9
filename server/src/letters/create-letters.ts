import { randomUUID } from 'node:crypto'
import { createAutoPass } from './automatic-redrive.ts'
import { createCampaigns } from './campaigns/create-campaigns.ts'
import { createCapture } from './capture.ts'
import type { Letters } from './letters.ts'
import { type LettersParts, silent } from './parts.ts'
import { createLetterActions } from './redrive.ts'
import { createRetention, defaultRetention } from './retention.ts'
import { createSearch } from './search.ts'

export function createLetters(given: LettersParts): Letters {
  const parts = { owner: randomUUID(), ...given }
  const { storage, log = silent, retention: policy = defaultRetention } = parts
  const capture = createCapture(parts)
  const retention = createRetention({ ...parts, policy, log })
  const { campaigns, pass, close } = createCampaigns(parts)

  return {
    capture: capture.capture,
    ...createSearch(storage),
    ...createLetterActions(parts),
    campaigns,
    passes: {
      auto: createAutoPass({ ...parts, log }),
      campaigns: pass,
      retention: retention.pass,
    },
    runRetention: retention.run,
    previewRetention: retention.preview,
    close: async () => {
      await capture.whenIdle()
      await close()
    },
  }
}
