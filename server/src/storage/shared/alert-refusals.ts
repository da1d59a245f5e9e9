/** The errors of commands on alerts. */
import { KnownError } from '../../errors.ts'
import type { PutAlertConfig } from '../contract/alerts.ts'

type ConfigRef = Pick<PutAlertConfig, 'kind' | 'name' | 'version'>

export function alertConfigChanged({ kind, name, version }: ConfigRef): KnownError {
  return new KnownError('ALERT_CONFIG_CHANGED', `${kind} ${name} is not at version ${version}`)
}

export function alertConfigsFull({ kind, countMax }: Pick<PutAlertConfig, 'kind' | 'countMax'>): KnownError {
  return new KnownError('ALERT_CONFIGS_FULL', `there are ${countMax} ${kind}s already`)
}

export function alertChanged(id: string): KnownError {
  return new KnownError('ALERT_CHANGED', `alert ${id} was changed at the same time`)
}
