import type { Environment } from '../config/environment.ts'

/** What a command needs of the process, so that a test can give its own. */
export type Context = Readonly<{
  environment: Environment
  folder: string
  /** What was asked for: standard output. */
  print(line: string): void
  /** What a person must know: standard error. */
  tell(line: string): void
}>
