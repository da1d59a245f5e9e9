/**
 * Labelled failures that are written as texts, in `texts/*.txt`. Unlike the causes in `causes/`, they were
 * written without looking at the rules of the grouping.
 *
 *     @@ cause | queue | error class
 *     message with ‹placeholder›, ‹placeholder:argument› and ⟦one¦of these⟧
 *     %%
 *     stack, where $MSG is the message; another %% starts another stack of the cause
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CauseDefinition } from './cause.ts'
import { fillText } from './fill-text.ts'

const folder = join(import.meta.dirname, 'texts')

export function readTextCauses(): CauseDefinition[] {
  return readdirSync(folder)
    .toSorted()
    .flatMap((file) =>
      readFileSync(join(folder, file), 'utf8')
        .split(/^@@ /m)
        .slice(1)
        .map((text) => parseCause(text)),
    )
}

function parseCause(text: string): CauseDefinition {
  const headEnd = text.indexOf('\n')
  const [cause = '', queue = '', errorClass = ''] = text
    .slice(0, headEnd)
    .split('|')
    .map((part) => part.trim())
  const [message = '', ...stacks] = text
    .slice(headEnd + 1)
    .split(/^%%\n/m)
    .map((part) => part.replace(/\n$/, ''))
  return {
    cause,
    queue,
    errorClass,
    write: (values) => {
      const written = fillText(message, values)
      const stack = stacks.length === 0 ? '' : fillText(values.pick(stacks), values)
      return { message: written, stack: stack.replace('$MSG', () => written) }
    },
  }
}
