/** A channel of redrive.yaml. `S`: of the settings, a secret that can be a reference. */
import type { ChannelKind, FieldValues } from './channel.ts'

export type ConfiguredChannel<S> = Readonly<{
  name: string
  namespace: string
  kind: ChannelKind
  /** The fields that are not secret. */
  shown: FieldValues
  secrets: Readonly<Record<string, S>>
}>
