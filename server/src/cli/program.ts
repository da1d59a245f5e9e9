import { Command } from 'commander'
import { type LoadedSettings, loadSettings } from '../config/settings/load-settings.ts'
import type { SettingName } from '../config/settings/settings.ts'
import { version } from '../version.ts'
import { addAlertsCommands } from './alerts-commands.ts'
import { addCausesCommands } from './causes-commands.ts'
import type { Context } from './context.ts'
import { addSettingOptions, readFlags } from './setting-options.ts'

type Run = (loaded: LoadedSettings, context: Context) => number | Promise<number>

const description = `Redrive keeps every message that a system failed to process, shows why it failed, and
brings it back.`

const notes = `
Every setting can be given as a flag, as an environment variable or in redrive.yaml;
the first of these wins. "redrive settings" shows every effective value and its source.

Exit codes: 0 success; 1 failure (port taken, store locked, counts differ);
2 unknown command, flag or setting, or a value out of bounds.`

const storeNotes = '\nAll settings of "redrive serve" are accepted; only the relevant ones are listed.'

/** Creates the commands. `finish` gets the exit code of the command that ran. */
export function createProgram(context: Context, finish: (exitCode: number) => void): Command {
  const program = new Command('redrive')
  const add = (
    name: string,
    summary: string,
    isListed: (name: SettingName) => boolean,
    run: Run,
    parent = program,
  ): Command => {
    const command = parent.command(name).description(summary).usage('[settings]').allowExcessArguments(false)
    addSettingOptions(command, isListed)
    command.action(async () => {
      const { environment, folder } = context
      finish(await run(loadSettings({ flags: readFlags(command), environment, folder }), context))
    })
    return command
  }

  program
    .description(description)
    .version(version, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .helpCommand('help [command]', 'Print the help of a command.')
    .usage('<command> [settings]')
    .addHelpText('after', notes)
    .configureHelp({ helpWidth: 100 })
    .showSuggestionAfterError(false)
    .exitOverride()
    // run.ts reports all errors; only requested help is written here.
    .configureOutput({
      writeOut: (text) => context.print(text.trimEnd()),
      writeErr: () => {},
      outputError: () => {},
    })

  add('serve', 'Run the server until it is asked to stop.', () => true, serve).addHelpText('after', notes)
  add('settings', 'Show every effective setting and its source.', isGeneral, printSettings)
  add('migrate', 'Update the schema of the store.', isForStore, migrate).addHelpText('after', storeNotes)
  add('verify', 'Check every count against the rows it counts.', isForStore, verify).addHelpText(
    'after',
    storeNotes,
  )
  const archiveCommand: Command = add(
    'archive',
    'Move ended letters to the archive, and remove expired letters from it.',
    (name) =>
      isForStore(name) || name === 'letters.retention_days' || name === 'letters.archive_retention_days',
    (loaded, commandContext) => {
      const { batchSize, dryRun } = archiveCommand.opts()
      return archive(loaded, commandContext, { batchSize: String(batchSize), isDryRun: dryRun === true })
    },
  ).option(
    '--batch-size <integer>',
    'The number of letters per transaction. (1 to 10000; default: 1000)',
    '1000',
  )
  archiveCommand.option('--dry-run', 'Count the letters to move and to remove, but change nothing.')
  archiveCommand.addHelpText('after', storeNotes)
  addAccessCommands(program, add)
  addCausesCommands(program, add)
  addAlertsCommands(program, add)
  addCheckCommands(program, context, finish)
  addAuditCommands(program.command('audit').description('Check or export the audit log.'), add)
  return program
}

/** Checks take no settings: a mistake in redrive.yaml must not look like an alarm. */
function addCheckCommands(program: Command, context: Context, finish: (exitCode: number) => void): void {
  const parent = program.command('check').description('Plugins for Nagios and compatible monitors.')
  const command = parent
    .command('dlq')
    .description('Check the numbers of dead webhook jobs of a running server.')
    .requiredOption('--warning <number>', 'WARNING if a consumer has more dead jobs.')
    .requiredOption('--critical <number>', 'CRITICAL if a consumer has more dead jobs.')
    .option('--channel <id>', 'Only the consumers of this channel.')
    .option('--consumer <id>', 'Only consumers with this id.')
    .option('--server <url>', 'The server. ($REDRIVE_SERVER; default: http://127.0.0.1:8080)')
    .option('--key <key>', 'The key for that server. ($REDRIVE_KEY)')
    .option('--timeout <seconds>', 'How long to wait for an answer.', '10')
    .allowExcessArguments(false)
    .addHelpText('after', '\nExit codes: 0 OK; 1 WARNING; 2 CRITICAL; 3 UNKNOWN, also for invalid arguments.')
  command.action(async () => {
    finish(await (await import('./check-dlq.ts')).checkDlq(command.opts(), context))
  })
}

export type AddCommand = (
  name: string,
  summary: string,
  isListed: (name: SettingName) => boolean,
  run: Run,
  parent: Command,
) => Command

function addAuditCommands(parent: Command, add: AddCommand): void {
  const loadAudit = () => import('./audit.ts')
  const verifyCommand: Command = add(
    'verify',
    'Check every row of the audit log against its chain.',
    isForStore,
    async (loaded, context) => {
      const { expect = [] } = verifyCommand.opts<{ expect?: string[] }>()
      return (await loadAudit()).verifyAuditLog(loaded, context, expect)
    },
    parent,
  ).option('--expect <head...>', 'Heads that an earlier run printed; fail if the log no longer has them.')
  verifyCommand.addHelpText('after', storeNotes)
  add(
    'export',
    'Print the audit log as lines of JSON, oldest first.',
    isForStore,
    async (loaded, context) => (await loadAudit()).exportAuditLog(loaded, context),
    parent,
  ).addHelpText('after', storeNotes)
}

const loadKeys = () => import('./keys.ts')

function addAccessCommands(program: Command, add: AddCommand): void {
  const isListed = (name: SettingName): boolean => isForStore(name)
  const addTarget = (command: Command): Command =>
    command
      .option('--server <url>', 'Act on a running server instead of the store. ($REDRIVE_SERVER)')
      .option('--key <key>', 'The key for that server. ($REDRIVE_KEY)')
      .addHelpText('after', storeNotes)
  const keys = program.command('keys').description('Create, list and revoke API keys.')
  const create: Command = add(
    'create',
    'Create a key, and its user if there is none with this name. Prints the key.',
    isListed,
    async (loaded, context) => (await loadKeys()).createKey(loaded, context, create.opts()),
    keys,
  )
  addTarget(create)
    .option('--user <name>', 'The name of the user.')
    .option('--role <role...>', 'A role for the user: Admin, or <namespace>:<role>.')
    .option('--scope <namespace>', 'Limit the key to a namespace.')
    .option('--expires <time>', 'When the key expires: 90d, or a time. Default: never.')
    .option('--name <text>', 'A note about the use of the key.')
  const list: Command = add(
    'list',
    'List all keys, without the keys themselves.',
    isListed,
    async (loaded, context) => (await loadKeys()).listKeys(loaded, context, list.opts()),
    keys,
  )
  addTarget(list)
  const revoke: Command = add(
    'revoke',
    'Revoke the key with an id or a prefix.',
    isListed,
    async (loaded, context) =>
      (await loadKeys()).revokeKey(loaded, context, revoke.opts(), String(revoke.args[0])),
    keys,
  ).argument('<key>', 'The id or the prefix of the key.')
  addTarget(revoke)
  const access = program.command('access').description('Show who may do what.')
  const show: Command = add(
    'show',
    'Show every user with its roles and the number of its keys.',
    isListed,
    async (loaded, context) => (await loadKeys()).showAccess(loaded, context, show.opts()),
    access,
  )
  addTarget(show)
}

// Each command is loaded when it runs: help and usage errors need not wait for the whole server to load.
const serve: Run = async (loaded, context) => (await import('./serve.ts')).serve(loaded, context)
const printSettings: Run = async (loaded, context) =>
  (await import('./show-settings.ts')).showSettings(loaded, context)
const migrate: Run = async (loaded, context) => (await import('./migrate.ts')).migrate(loaded, context)
const verify: Run = async (loaded, context) => (await import('./verify.ts')).verify(loaded, context)
const archive = async (
  loaded: LoadedSettings,
  context: Context,
  options: Readonly<{ batchSize: string; isDryRun: boolean }>,
): Promise<number> => (await import('./archive.ts')).archive(loaded, context, options)

function isGeneral(name: SettingName): boolean {
  return name === 'config'
}

function isForStore(name: SettingName): boolean {
  return /^(config$|store|must_exist$|sqlite\.lock_wait$|postgres|vault)/.test(name)
}
