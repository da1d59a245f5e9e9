import type { Environment } from '../config/settings/environment.ts'

/** The environment of a command, which tests can replace. */
export type Context = Readonly<{
  environment: Environment
  folder: string
  /** Writes the result of the command to standard output. */
  print(line: string): void
  /** Writes progress and errors for people to standard error. */
  report(line: string): void
}>
