import type { Setting } from './setting-kinds.ts'
import { environmentNameOf, flagOf, type SettingsTable } from './settings.ts'

const introduction = `# Settings

Every setting can be given in three ways. The first of these that gives it wins:

1. as a flag: \`redrive serve --log-level debug\`
2. as an environment variable: \`REDRIVE_LOG_LEVEL=debug\`; an empty one counts as not set
3. in a settings file: \`redrive.yaml\` in the working folder, or the file that \`--config\` names

In the file, maps inside maps are names joined with dots, so these two are the same:

\`\`\`yaml
log:
  level: debug
\`\`\`

\`\`\`yaml
log.level: debug
\`\`\`

A name that is not in this list, or a value out of its bounds, stops the start with exit code 2, and the
complaint says where it stands and what was probably meant. \`redrive settings\` shows every value in force
and where it came from.

A duration is written as \`300ms\`, \`1.5s\`, \`5m\` or \`24h\`; a size as \`512\`, \`16KiB\` (1024) or \`64MB\` (1000000);
a list as \`one,two\`, or as a list in the file. A secret can be given by reference: see [secrets](secrets.md).

Some settings are also read from a variable that other systems of the kind have, such as \`DLQ_PURGE_LIMIT\`. There a
value out of bounds is the nearest one allowed, and what cannot be read counts as not set; our own name wins.

Variables that start with \`REDRIVE_TEST_\` belong to the tests. In Kubernetes, the variables that describe a
service called \`redrive\` (\`REDRIVE_PORT=tcp://…\` and the like) are not taken for settings.
`

/** docs/settings.md, made from the table. */
export function settingsPage(table: SettingsTable): string {
  return [introduction, ...Object.entries(table).map(([name, setting]) => section(name, setting))].join('\n')
}

function section(name: string, setting: Setting<unknown>): string {
  const fallback = setting.default === undefined ? 'none' : code(setting.format(setting.default))
  return [
    `## ${name}`,
    '',
    setting.sentence,
    '',
    `- type: ${setting.type}${setting.bounds === '' ? '' : `, ${setting.bounds}`}`,
    `- default: ${fallback}`,
    name === 'config'
      ? `- ${code(flagOf(name))}, ${code(environmentNameOf(name))}; not in the file itself`
      : `- ${code(flagOf(name))}, ${variables(name, setting)}`,
    '',
  ].join('\n')
}

function variables(name: string, { known }: Setting<unknown>): string {
  const own = code(environmentNameOf(name))
  return known === undefined ? own : `${own}, ${code(known.name)}`
}

function code(text: string): string {
  return `\`${text}\``
}
