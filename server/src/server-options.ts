import type { Secret } from './config/secrets/secret.ts'
import type { Settings } from './config/settings/settings.ts'
import type { Clock } from './core/time/instant.ts'
import type { Logger } from './ops/log/log.ts'
import type { MetricReport } from './ops/metrics/combined-metrics.ts'
import type { StoreTarget } from './storage/open-storage.ts'

export type ServerOptions = Readonly<{
  settings: Settings
  store: StoreTarget
  log: Logger
  /** Collects the metrics of all processes that serve this port. */
  collectReports?: () => Promise<readonly MetricReport[]>
  /** Receives the key of the administrator once, at the first start with access control. */
  onFirstKey?: (key: string) => void
  /** Reads a secret of the settings, which may be a reference. Default: it is the secret itself. */
  readSecret?: (given: Secret) => Promise<Secret>
  /** For tests: the clock of this machine. */
  machineClock?: Clock
}>
