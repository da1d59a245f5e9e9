/** The definitions of `redrive alerts …`. */
import type { Command } from 'commander'
import { addServer, isListed } from './causes-commands.ts'
import type { AddCommand } from './program.ts'

const loadAlerts = () => import('./alerts.ts')

export function addAlertsCommands(program: Command, add: AddCommand): void {
  const alerts = program.command('alerts').description('Show alerts, and acknowledge, mute or resolve them.')
  const list: Command = add(
    'list',
    'List alerts, newest first.',
    isListed,
    async (loaded, context) => (await loadAlerts()).listAlerts(loaded, context, list.opts()),
    alerts,
  )
  addServer(list)
    .option('--state <state...>', 'Only alerts in this state: pending, firing, resolved. (default: firing)')
    .option('--rule <name>', 'Only alerts of this rule.')
    .option('--queue <name>', 'Only alerts about this queue.')
    .option('--limit <integer>', 'The number of alerts. (1 to 500; default: 50)')
    .option('--json', 'Print the answer of the server.')
  for (const action of ['acknowledge', 'mute', 'resolve'] as const) {
    const command: Command = add(
      action,
      summaries[action],
      isListed,
      async (loaded, context) =>
        (await loadAlerts()).decideAlert(action, loaded, context, command.opts(), String(command.args[0])),
      alerts,
    ).argument('<alert>', 'The id of the alert.')
    addServer(command)
      .option('--note <text>', 'A note for other people.')
      .option('--reason <text>', 'Why, for the audit log.')
    if (action === 'mute') command.option('--until <time>', 'Until when, as an RFC 3339 time.')
  }
}

const summaries = {
  acknowledge: 'Acknowledge an alert: somebody works on it.',
  mute: 'Mute an alert until a time.',
  resolve: 'Resolve an alert.',
}
