/**
 * Notices topics that were deleted, or created again. The records that were sent to the earlier topic are
 * gone, and an offset of the new topic tells nothing about them. A server notices it only if it has seen the
 * earlier topic: the ids of topics are not stored.
 */
import type { Instant } from '../../../core/time/instant.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'

type Identity = Readonly<{ id: string; seenAt: Instant }>

export class TopicIdentities {
  readonly #clients: ClusterClients
  #known: ReadonlyMap<string, Identity> = new Map()

  constructor(clients: ClusterClients) {
    this.#clients = clients
  }

  /**
   * Reads the ids of topics. For those that are not the same as before, when the earlier one was seen last.
   */
  async update(topics: readonly string[], now: Instant): Promise<ReadonlyMap<string, Instant>> {
    const ids = topics.length === 0 ? new Map<string, string>() : await this.#readIds(topics)
    const replaced = new Map<string, Instant>()
    for (const topic of topics) {
      const before = this.#known.get(topic)
      if (before !== undefined && before.id !== ids.get(topic)) replaced.set(topic, before.seenAt)
    }
    this.#known = new Map([...ids].map(([topic, id]) => [topic, { id, seenAt: now }]))
    return replaced
  }

  async #readIds(topics: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const admin = await this.#clients.admin()
    const all = new Set(await admin.listTopics({ includeInternals: false }))
    const found = topics.filter((topic) => all.has(topic))
    if (found.length === 0) return new Map()
    const reader = await this.#clients.reader()
    const metadata = await reader.metadata({ topics: found, forceUpdate: true })
    return new Map(found.flatMap((topic) => [[topic, metadata.topics.get(topic)?.id ?? ''] as const]))
  }
}
