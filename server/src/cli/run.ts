import { type Command, CommanderError } from 'commander'
import { formatSuggestion } from '../config/read-settings.ts'
import { maskStore } from '../config/store-text.ts'
import { KnownError } from '../errors.ts'
import { findNearest } from '../find-nearest.ts'
import type { Context } from './context.ts'
import { exitCodeFor, exitCodes } from './exit-codes.ts'
import { createProgram } from './program.ts'
import { settingFlags } from './setting-options.ts'

/** Runs one command line. Resolves with the exit code; whatever went wrong has been told by then. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  let exitCode: number = exitCodes.ok
  const program = createProgram(context, (code) => {
    exitCode = code
  })
  if (args.length === 0) {
    context.tell(program.helpInformation().trimEnd())
    return exitCodes.badUsage
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return tellUsage(error, program, args, context)
    tell(error, context)
    return exitCodeFor(error)
  }
}

function tell(error: unknown, context: Context): void {
  if (error instanceof KnownError) {
    context.tell(`redrive: ${error.message}`)
    context.tell(`  ${error.hint}`)
    return
  }
  context.tell(`redrive: this should not have happened, please report it: ${String(error)}`)
  if (error instanceof Error && error.stack) context.tell(error.stack)
}

function tellUsage(
  error: CommanderError,
  program: Command,
  args: readonly string[],
  context: Context,
): number {
  if (error.exitCode === 0) return exitCodes.ok
  context.tell(`redrive: ${usageSentence(error, program, args)}`)
  context.tell('  See redrive --help, or redrive <command> --help for its settings.')
  return exitCodes.badUsage
}

function usageSentence(error: CommanderError, program: Command, args: readonly string[]): string {
  // What follows an equals sign may be a secret.
  const culprit = /'([^'=]*)/.exec(error.message)?.[1] ?? ''
  switch (error.code) {
    case 'commander.unknownOption':
      if (settingFlags.includes(culprit) && !isCommand(program, args[0])) {
        return `${culprit} stands after the command, as in redrive serve ${culprit} …`
      }
      return `there is no flag ${culprit}${formatSuggestion(findNearest(culprit, [...settingFlags, '--help']))}`
    case 'commander.unknownCommand':
      return `there is no command ${maskStore(culprit)}${formatSuggestion(findNearest(culprit, commandNames(program)))}`
    case 'commander.optionMissingArgument':
      return `the flag ${culprit.split(' ')[0]} needs a value`
    case 'commander.excessArguments':
      return 'there are words after the command that are not flags'
    default:
      return error.message.replace(/^error: /, '')
  }
}

function isCommand(program: Command, name: string | undefined): boolean {
  return name !== undefined && commandNames(program).includes(name)
}

function commandNames(program: Command): string[] {
  return [...program.commands.map((command) => command.name()), 'help']
}
