/** Reads the text format of Prometheus. */
export type MetricSample = Readonly<{ name: string; labels: Readonly<Record<string, string>>; value: number }>
export type MetricFamily = Readonly<{ name: string; type: string; help: string; samples: MetricSample[] }>

export async function readMetrics(url: string): Promise<ReadonlyMap<string, MetricFamily>> {
  const response = await fetch(`${url}/metrics`)
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`)
  return parseMetrics(await response.text())
}

export function parseMetrics(text: string): ReadonlyMap<string, MetricFamily> {
  const families = new Map<string, MetricFamily>()
  let current: MetricFamily | undefined
  let help = ''
  for (const line of text.split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? []
    if (kind === 'HELP') help = rest
    else if (kind === 'TYPE') {
      current = { name, type: rest, help, samples: [] }
      families.set(name, current)
    } else if (line !== '') current?.samples.push(parseSample(line))
  }
  return families
}

function parseSample(line: string): MetricSample {
  const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
  if (name === '') throw new Error(`not a sample: ${line}`)
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, label = '', text = '']) => [label, text])),
    value: Number(value),
  }
}
