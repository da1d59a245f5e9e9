import { Command } from 'commander'
import { type LoadedSettings, loadSettings } from '../config/load-settings.ts'
import type { SettingName } from '../config/settings.ts'
import { version } from '../version.ts'
import type { Context } from './context.ts'
import { addSettingOptions, readFlags } from './setting-options.ts'

type Run = (loaded: LoadedSettings, context: Context) => number | Promise<number>

const about = `Redrive keeps every message that a system failed to process, shows why it failed, and
brings it back.`

const notes = `
Every setting can be given as a flag, as an environment variable or in redrive.yaml;
the first of these wins. "redrive settings" shows which value is in force, and why.

Exit codes: 0 all went well; 1 it failed (port taken, store locked, counts that differ);
2 unknown command, flag or setting, or a value out of bounds.`

const storeNotes = '\nAll settings of "redrive serve" are taken; those that matter here are listed.'

/** The commands. `finish` gets the exit code of the one that ran. */
export function createProgram(context: Context, finish: (exitCode: number) => void): Command {
  const program = new Command('redrive')
  const add = (name: string, summary: string, shown: (name: SettingName) => boolean, run: Run): Command => {
    const command = program.command(name).description(summary).usage('[settings]').allowExcessArguments(false)
    addSettingOptions(command, shown)
    command.action(async () => {
      const { environment, folder } = context
      finish(await run(loadSettings({ flags: readFlags(command), environment, folder }), context))
    })
    return command
  }

  program
    .description(about)
    .version(version, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .helpCommand('help [command]', 'Print the help of a command.')
    .usage('<command> [settings]')
    .addHelpText('after', notes)
    .configureHelp({ helpWidth: 100 })
    .showSuggestionAfterError(false)
    .exitOverride()
    // Complaints are made in one place, see run.ts; only asked-for help is written from here.
    .configureOutput({
      writeOut: (text) => context.print(text.trimEnd()),
      writeErr: () => {},
      outputError: () => {},
    })

  add('serve', 'Run the server until it is asked to stop.', () => true, serve).addHelpText('after', notes)
  add('settings', 'Show every setting in force and where it came from.', isGeneral, settings)
  add('migrate', "Bring the store's schema up to date.", isForStore, migrate).addHelpText('after', storeNotes)
  add('verify', 'Check every count against the rows it counts.', isForStore, verify).addHelpText(
    'after',
    storeNotes,
  )
  const archived: Command = add(
    'archive',
    'Move letters that ended long ago to the archive, and remove what is over there.',
    (name) => isForStore(name) || name === 'letters.retention_days' || name === 'letters.archive_days',
    (loaded, given) => {
      const { batchSize, dryRun } = archived.opts()
      return archive(loaded, given, { batchSize: String(batchSize), isDryRun: dryRun === true })
    },
  ).option(
    '--batch-size <integer>',
    'How many letters one transaction moves. (1 to 10000; default: 1000)',
    '1000',
  )
  archived.option('--dry-run', 'Count what would be moved and removed, and change nothing.')
  archived.addHelpText('after', storeNotes)
  return program
}

// Each command is loaded when it is run: help and complaints need not wait for the whole server.
const serve: Run = async (loaded, context) => (await import('./serve.ts')).serve(loaded, context)
const settings: Run = async (loaded, context) =>
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
  return /^(config$|store|postgres|vault)/.test(name)
}
