import { type Command, CommanderError } from 'commander'
import { formatSuggestion } from '../config/settings/read-settings.ts'
import { maskStore } from '../config/store/store-text.ts'
import { KnownError } from '../errors.ts'
import { findNearest } from '../find-nearest.ts'
import type { Context } from './context.ts'
import { checkCodes, exitCodeFor, exitCodes } from './exit-codes.ts'
import { createProgram } from './program.ts'
import { settingFlags } from './setting-options.ts'

/** Runs one command line. Resolves with the exit code, after errors were reported. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  let exitCode: number = exitCodes.ok
  const program = createProgram(context, (code) => {
    exitCode = code
  })
  if (args.length === 0) {
    context.report(program.helpInformation().trimEnd())
    return exitCodes.badUsage
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return reportUsageError(error, program, args, context)
    reportError(error, context)
    return exitCodeFor(error)
  }
}

function reportError(error: unknown, context: Context): void {
  if (error instanceof KnownError) {
    context.report(`redrive: ${error.message}`)
    context.report(`  ${error.hint}`)
    return
  }
  context.report(`redrive: unexpected error, please report it: ${String(error)}`)
  if (error instanceof Error && error.stack) context.report(error.stack)
}

function reportUsageError(
  error: CommanderError,
  program: Command,
  args: readonly string[],
  context: Context,
): number {
  if (error.exitCode === 0) return exitCodes.ok
  const sentence = describeUsageError(error, program, args)
  if (args[0] === 'check') {
    // A monitor shows the output, and takes the code of bad usage for CRITICAL.
    context.print(`DLQ UNKNOWN - ${sentence}`)
    return checkCodes.unknown
  }
  context.report(`redrive: ${sentence}`)
  context.report('  See redrive --help, or redrive <command> --help for its settings.')
  return exitCodes.badUsage
}

function describeUsageError(error: CommanderError, program: Command, args: readonly string[]): string {
  // Stop at an equals sign: the text after it may be a secret.
  const culprit = /'([^'=]*)/.exec(error.message)?.[1] ?? ''
  switch (error.code) {
    case 'commander.unknownOption':
      if (settingFlags.includes(culprit) && !isCommand(program, args[0])) {
        return `the flag ${culprit} must follow the command, as in redrive serve ${culprit} …`
      }
      return `there is no flag ${culprit}${formatSuggestion(findNearest(culprit, [...settingFlags, '--help']))}`
    case 'commander.unknownCommand':
      return `there is no command ${maskStore(culprit)}${formatSuggestion(findNearest(culprit, listCommandNames(program)))}`
    case 'commander.optionMissingArgument':
      return `the flag ${culprit.split(' ')[0]} needs a value`
    case 'commander.excessArguments':
      return 'the command is followed by arguments that are not flags'
    default:
      return error.message.replace(/^error: /, '')
  }
}

function isCommand(program: Command, name: string | undefined): boolean {
  return name !== undefined && listCommandNames(program).includes(name)
}

function listCommandNames(program: Command): string[] {
  return [...program.commands.map((command) => command.name()), 'help']
}
