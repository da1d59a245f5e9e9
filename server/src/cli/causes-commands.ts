/** The definitions of `redrive causes …`. */
import type { Command } from 'commander'
import type { AddCommand } from './program.ts'

const loadCauses = () => import('./causes.ts')
/** The settings that the commands for a running server show as options. */
export const isListed = (name: string): boolean => name === 'config' || name === 'port'
const serverNotes = `
The command calls a running server: --server, else $REDRIVE_SERVER, else the port of these settings on this machine.`

export function addCausesCommands(program: Command, add: AddCommand): void {
  const causes = program
    .command('causes')
    .description('Show why letters died, and redrive or discard a cause.')
  const list: Command = add(
    'list',
    'List causes over all dead queues, the largest first.',
    isListed,
    async (loaded, context) => (await loadCauses()).listCauses(loaded, context, list.opts()),
    causes,
  )
  addServer(list)
    .option('--queue <name...>', 'Only these dead queues.')
    .option(
      '--status <status...>',
      'Only letters with this status: PENDING, RETRYING, RESOLVED, DEAD, DISCARDED.',
    )
    .option('--limit <integer>', 'The number of causes. (1 to 500; default: 20)')
    .option('--json', 'Print the answer of the server.')
  const show: Command = add(
    'show',
    'Show one cause with its counts per queue.',
    isListed,
    async (loaded, context) =>
      (await loadCauses()).showCause(loaded, context, show.opts(), String(show.args[0])),
    causes,
  ).argument('<cause>', 'The id of the cause.')
  addServer(show)
  addCampaignCommand(causes, add, 'redrive')
  addCampaignCommand(causes, add, 'discard')
  const merge: Command = add(
    'merge',
    'Merge causes into the first one.',
    isListed,
    async (loaded, context) => (await loadCauses()).mergeCauses(loaded, context, merge.opts(), merge.args),
    causes,
  ).argument('<cause...>', 'The ids of the causes.')
  addServer(merge).option('--reason <text>', 'Why, for the audit log.')
}

export function addServer(command: Command): Command {
  return command
    .option('--server <url>', 'The server to call. ($REDRIVE_SERVER)')
    .option('--key <key>', 'The key for that server. ($REDRIVE_KEY)')
    .addHelpText('after', serverNotes)
}

function addCampaignCommand(causes: Command, add: AddCommand, action: 'redrive' | 'discard'): void {
  const verb = action === 'redrive' ? 'Redrive' : 'Discard'
  const command: Command = add(
    action,
    `${verb} the letters of a cause. Without --yes, only show what would happen.`,
    isListed,
    async (loaded, context) =>
      (await loadCauses()).startCampaign(action, loaded, context, command.opts(), String(command.args[0])),
    causes,
  ).argument('<cause>', 'The id of the cause.')
  addServer(command)
    .option('--queue <name...>', 'Only letters in these dead queues.')
    .option('--reason <text>', 'Why, for the audit log.')
    .option('--name <text>', 'The name of the campaign. (default: the action and the title of the cause)')
    .option('--expect <count>', 'Refuse the campaign if it would not select exactly this number of letters.')
    .option('--yes', 'Start the campaign.')
  if (action === 'discard') return
  command
    .option('--target <queue>', 'Send the letters to this queue instead of their origin.')
    .option('--canary <count>', 'Send this number of letters first, and the others if these succeed.')
    .option('--rate <number>', 'Letters per second.')
}
