/**
 * The rules of a server: built-in ones, those of redrive.yaml, and those that were created or changed through
 * the API. A rule of the configuration hides a rule of the API with the same name, and both hide a built-in
 * one.
 */
import { builtInRules, findBuiltInRule } from '../../core/alerts/built-in-rules.ts'
import type { AlertRule, SourcedRule } from '../../core/alerts/rule.ts'
import { decodeRule, encodeRule } from '../../core/alerts/rule-document.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { Attribution, Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { StoredAlertConfig } from '../../storage/contract/alerts.ts'
import type { AuditEntry, WriteAudit } from '../../storage/contract/audit.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

export interface AlertRules {
  /** In byte order of their names. */
  list(): Promise<readonly SourcedRule[]>
  get(name: string): Promise<SourcedRule | null>
  /** Creates or replaces a rule. Rejects with ALERT_CONFIG_CHANGED if another request did so, too. */
  put(rule: AlertRule, attribution: Attribution): Promise<void>
  /** Removes a rule, or the changes of a built-in one. */
  remove(rule: SourcedRule, attribution: Attribution): Promise<void>
}

export const rulesMax = 500

export function createRules(
  parts: Readonly<{
    storage: () => Pick<StoreReads, 'listAlertConfigs' | 'getAlertConfig'>
    engine: () => Pick<Engine, 'write'>
    clock: Clock
    configured: readonly AlertRule[]
  }>,
): AlertRules {
  const configured = new Map(parts.configured.map((rule) => [rule.name, rule]))
  const source = (name: string, stored: StoredAlertConfig | null): SourcedRule | null => {
    const given = configured.get(name)
    if (given !== undefined) return { ...given, source: 'configuration', version: 0 }
    const changed = stored === null ? null : decodeStored(stored)
    if (stored !== null && changed !== null) return { ...changed, source: 'api', version: stored.version }
    const fixed = findBuiltInRule(name)
    return fixed === undefined ? null : { ...fixed, source: 'built-in', version: 0 }
  }
  const get = async (name: string) => source(name, await parts.storage().getAlertConfig('rule', name))
  const createAudit = (action: string, rule: AlertRule, attribution: Attribution): WriteAudit => {
    const { name, namespace } = rule
    const at = parts.clock.now()
    const target = `alert-rule/${name}`
    const entry: AuditEntry = { ...attribution, namespace, at, action, target, details: encodeRule(rule) }
    return { op: 'audit', entries: [entry] }
  }
  return {
    list: async () => {
      const stored = new Map(
        (await parts.storage().listAlertConfigs({ kind: 'rule' })).map((each) => [each.name, each]),
      )
      const names = new Set([...builtInRules.map(({ name }) => name), ...configured.keys(), ...stored.keys()])
      return [...names].toSorted().flatMap((name) => source(name, stored.get(name) ?? null) ?? [])
    },
    get,
    put: async (rule, attribution) => {
      const { name, namespace } = rule
      refuseConfigured(configured, name)
      const stored = await parts.storage().getAlertConfig('rule', name)
      const version = stored?.version ?? 0
      const document = encodeRule(rule)
      await parts
        .engine()
        .write([
          { op: 'put-alert-config', kind: 'rule', name, namespace, version, document, countMax: rulesMax },
          createAudit(version === 0 ? 'alert-rule.create' : 'alert-rule.change', rule, attribution),
        ])
    },
    remove: async (rule, attribution) => {
      const { name, version } = rule
      refuseConfigured(configured, name)
      if (rule.source === 'built-in') {
        throw new KnownError('ALERT_RULE_FIXED', `rule ${name} is built in and cannot be deleted`)
      }
      await parts
        .engine()
        .write([
          { op: 'delete-alert-config', kind: 'rule', name, version },
          createAudit('alert-rule.delete', rule, attribution),
        ])
    },
  }
}

function refuseConfigured(configured: ReadonlyMap<string, AlertRule>, name: string): void {
  if (!configured.has(name)) return
  throw new KnownError('ALERT_RULE_FIXED', `rule ${name} is part of the configuration of the server`)
}

/** Null: the rule was stored by a newer version and cannot be read. */
function decodeStored({ name, namespace, document }: StoredAlertConfig): AlertRule | null {
  const decoded = decodeRule(name, namespace, document, findBuiltInRule(name))
  return 'rule' in decoded ? decoded.rule : null
}
