/**
 * The setting `alerts.rules`: a list of maps. In redrive.yaml it is written as such; a flag or an environment
 * variable has the same structure as JSON.
 */
import { findBuiltInRule } from '../core/alerts/built-in-rules.ts'
import type { AlertRule } from '../core/alerts/rule.ts'
import { decodeRule, encodeRule, findRuleNameProblem } from '../core/alerts/rule-document.ts'
import { systemNamespace } from '../core/items/queue.ts'
import { refuseSetting, SettingNode } from './settings/setting-node.ts'

const setting = 'alerts.rules'
const rulesMax = 200

export function parseAlertRules(text: string): readonly AlertRule[] {
  const rows = SettingNode.parse(text, setting, 'a list of maps').items()
  if (rows.length > rulesMax)
    throw refuseSetting(`${setting} has ${rows.length} rules; the limit is ${rulesMax}`)
  const rules = rows.map(readRule)
  const names = new Set<string>()
  for (const { name } of rules) {
    if (names.has(name)) throw refuseSetting(`${setting} has ${name} twice`)
    names.add(name)
  }
  return rules
}

function readRule(row: SettingNode): AlertRule {
  const name = row.at('name').required()
  const problem = findRuleNameProblem(name)
  if (problem !== undefined) throw refuseSetting(`${row.path}.name: ${problem}`)
  const base = findBuiltInRule(name)
  const namespace = row.at('namespace').text() ?? base?.namespace ?? systemNamespace
  const { name: _, namespace: __, ...fields } = row.fields()
  const decoded = decodeRule(name, namespace, fields, base)
  if ('rule' in decoded) return decoded.rule
  const [first] = decoded.problems
  throw refuseSetting(`${row.path}.${first?.field} ${first?.message}`)
}

/** For `redrive settings`. */
export function formatAlertRules(rules: readonly AlertRule[]): string {
  return JSON.stringify(
    rules.map((rule) => ({ name: rule.name, namespace: rule.namespace, ...encodeRule(rule) })),
  )
}
