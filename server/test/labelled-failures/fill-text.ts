/** Replaces placeholders in the texts of failures by random values. */
import type { Values } from './values.ts'

export function fillText(text: string, values: Values): string {
  return text
    .replaceAll(/⟦([^⟦⟧]*)⟧/g, (_, choices: string) => values.pick(choices.split('¦')))
    .replaceAll(/‹(\w+)(?::([^›]+))?›/g, (_, name: string, argument?: string) => {
      const write = writers[name]
      if (write === undefined) throw new Error(`there is no placeholder ${name}`)
      return write(values, argument ?? '')
    })
}

const words = (
  'anchor birch cobalt dune ember fjord grove harbor iris jasper kelp lunar maple nectar onyx prairie quartz raven ' +
  'sable tundra umber velvet willow yonder zinc'
).split(' ')
const endings = 'pdf csv xlsx xml json txt png docx zip tiff'.split(' ')
const people = (
  "Astrid Holmgren|Tomoko Ishikawa|Gabriel Fontaine|Oluwaseun Bello|Mateus Carvalho|Finn O'Sullivan|Chidi Nwosu|" +
  'Priya Raghunathan|Maren Thorvaldsen|Hassan al-Rashid|Noor van Dijk|Sven-Erik Dahl|Imani Wekesa|Kenji Morimoto'
).split('|')
const companies = (
  'Halberd Foods|Kestrel Aviation|Nimbus Retail|Osprey Labs|Polaris Freight|Quill & Sons|Riverton Dairy|' +
  'Saffron Textiles|Thistle Energy|Umbra Optics|Verdant Farms|Willowbrook Clinic|Xenith Motors|Zephyr Air'
).split('|')
const cities = 'Aarhus|Bilbao|Cork|Dresden|Exeter|Florence|Galway|Innsbruck|Jaipur|Kigali|Nantes|Oulu'.split(
  '|',
)
const japanese = '田中|佐藤|鈴木|高橋|渡辺|伊藤|山本|中村|小林|加藤|吉田|山田'.split('|')
const chinese = '王伟|李娜|张敏|刘洋|陈静|杨帆|赵磊|黄丽|周杰|吴昊'.split('|')
const russian = 'Иванов|Смирнова|Кузнецов|Попова|Соколов|Лебедева|Козлов|Новикова'.split('|')
/** Lines move between releases. */
const lineShifts = [0, 0, 0, 1, 2, 5, 12]

const two = (value: number): string => String(value).padStart(2, '0')

const writeRange = (values: Values, range: string): string => {
  const [from = 1, to = 9_999] = range === '' ? [] : range.split('-').map(Number)
  return String(values.number(from, to + 1))
}

const writers: Readonly<Record<string, (values: Values, argument: string) => string>> = {
  uuid: (values) => values.uuid(),
  hex: (values, length) => values.hex(Number(length || 8)),
  HEX: (values, length) => values.hex(Number(length || 16)).toUpperCase(),
  int: writeRange,
  tok: (values, length) => values.token(Number(length || 24)),
  ip: (values) => values.ip(),
  host: (values, name) =>
    `${name}-${two(values.number(1, 60))}.${values.pick(['fra', 'iad', 'sin'])}.internal.example`,
  person: (values) => values.pick(people),
  company: (values) => values.pick(companies),
  city: (values) => values.pick(cities),
  jp: (values) => values.pick(japanese),
  zh: (values) => values.pick(chinese),
  ru: (values) => values.pick(russian),
  word: (values) => values.pick(words),
  slug: (values) => values.some(words, values.number(2, 4)).join('-'),
  file: (values) => `${values.some(words, 2).join(values.pick(['-', '_', '']))}.${values.pick(endings)}`,
  email: (values) => values.email(),
  ts: (values) => values.time(),
  date: (values) => values.time().slice(0, 10),
  amount: (values) => values.amount(),
  order: (values) => `${values.pick(['RES', 'BKG', 'POL'])}-${values.number(10_000, 1_000_000)}`,
  iban: (values) => `DE${values.text('0123456789', 20)}`,
  phone: (values) => `+44 7${values.number(100, 1_000)} ${values.number(100_000, 1_000_000)}`,
  rel: (values) =>
    `2026${two(values.number(1, 13))}${two(values.number(1, 29))}${values.number(100_000, 236_000)}`,
  ln: (values, line) => String(Number(line) + values.pick(lineShifts)),
}
