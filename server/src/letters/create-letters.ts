import { randomUUID } from 'node:crypto'
import { intersectScope, type Scope } from '../core/access/scope.ts'
import { redactStorage } from '../storage/scope/redacted-storage.ts'
import { scopeStorage } from '../storage/scope/scoped-storage.ts'
import { AutomaticRedrive } from './automatic-redrive.ts'
import { CampaignService } from './campaigns/campaign-service.ts'
import { createChanges } from './campaigns/watch.ts'
import { Capture } from './capture.ts'
import { createGroupActions } from './grouping/group-actions.ts'
import { GroupJobService } from './grouping/group-jobs.ts'
import { previewRules } from './grouping/preview-rules.ts'
import type { Letters } from './letters.ts'
import { type LettersParts, silent } from './parts.ts'
import { limitCampaigns, limitGroupJobs } from './redacted-selections.ts'
import { createLetterActions } from './redrive.ts'
import { defaultRetention, Retention } from './retention.ts'
import { createScopedLetters } from './scoped-letters.ts'
import { createSearch } from './search.ts'
import { createUndo } from './undo.ts'

export function createLetters(given: LettersParts): Letters {
  const parts = { owner: randomUUID(), ...given }
  const { storage, log = silent, retention: policy = defaultRetention } = parts
  const capture = new Capture(parts)
  const retention = new Retention({ ...parts, policy, log })
  const automaticRedrive = new AutomaticRedrive({ ...parts, log })
  const changes = createChanges()
  const campaigns = new CampaignService({ ...parts, changes })

  const groupJobs = new GroupJobService({ ...parts, log })
  const actions = createLetterActions(parts)

  /** The letters of some namespaces, with the content of some namespaces; null: of all. */
  const openView = (namespaces: Scope, readable: Scope): Letters => {
    const scoped = namespaces === null ? storage : scopeStorage(storage, namespaces)
    const seen = readable === null ? scoped : redactStorage(scoped, readable)
    const service = new CampaignService({ ...parts, storage: seen, changes })
    const inView = readable === null ? service : limitCampaigns(service, scoped, readable)
    const view =
      namespaces === null
        ? { ...letters, ...createSearch(seen), ...createUndo(seen, actions), campaigns: inView }
        : createScopedLetters({ letters, storage: seen, campaigns: inView, namespaces })
    return {
      ...view,
      ...(readable !== null && { groupJobs: limitGroupJobs(view.groupJobs, scoped, readable) }),
      within: (inner) => openView(intersectScope(inner, namespaces ?? undefined), readable),
      readableIn: (inner) => openView(namespaces, intersectScope(inner, readable ?? undefined)),
    }
  }

  const letters: Letters = {
    capture: (queue, letters, attribution) => capture.capture(queue, letters, attribution),
    ...createSearch(storage),
    ...actions,
    ...createUndo(storage, actions),
    ...createGroupActions(parts),
    campaigns,
    groupJobs,
    previewRules: (queue, rules, lettersMax) => previewRules(storage, queue, rules, lettersMax),
    within: (namespaces) => openView(namespaces, null),
    readableIn: (readable) => openView(null, readable),
    passes: {
      auto: (options) => automaticRedrive.pass(options),
      campaigns: () => campaigns.pass(),
      groups: () => groupJobs.pass(),
      retention: () => retention.pass(),
    },
    runRetention: (options) => retention.run(options),
    previewRetention: () => retention.preview(),
    close: async () => {
      await capture.waitUntilIdle()
      await campaigns.close()
      await groupJobs.close()
    },
  }
  return letters
}
