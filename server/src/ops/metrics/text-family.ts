/**
 * A metric with thousands of series, rendered as text without the library, which takes several times as long:
 * it builds an object with a sorted key for each value.
 */
export type TextFamily = Readonly<{
  name: string
  help: string
  type: 'gauge' | 'counter'
  labelNames: readonly string[]
}>

export type TextSeries = Readonly<{ labels: readonly string[]; value: number }>

/** Renders the text format of Prometheus. `labels` have the order of `labelNames`. */
export function renderFamily(
  { name, help, type, labelNames }: TextFamily,
  series: Iterable<TextSeries>,
): string {
  const lines = [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`]
  for (const { labels, value } of series) {
    const pairs = labels.map((label, at) => `${labelNames[at]}="${escapeLabel(label)}"`)
    lines.push(`${name}{${pairs.join(',')}} ${value}`)
  }
  return `${lines.join('\n')}\n`
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeLabel(text: string): string {
  // Most labels need no change, and a test is cheaper than three replacements.
  if (!/[\\\n"]/.test(text)) return text
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}
