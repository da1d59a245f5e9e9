/** Values that differ in the failures of one cause: names of people, files, hosts, ids, times, sizes. */
import { createSeededRandom, type SeededRandom } from '../seeded-random.ts'

const people = (
  'Amara Okafor|Lars Lindqvist|Mei Tanaka|Pedro Alvarez|Zofia Kowalczyk|Ahmed Farouk|Chloe Martin|Ivan Petrov|' +
  'Siobhan Doyle|Rajesh Iyer|Camille Laurent|Olu Adeyemi|Greta Schulz|Nadia Haddad|Tomas Novak|Aisha Rahman|' +
  'Bjorn Eriksen|Lucia Romano|Kwame Mensah|Hana Sato|Yusuf Demir|Elena Popescu|Marco Bianchi|Freya Olsen'
).split('|')
const files =
  'invoice|catalogue|payroll|manifest|returns|statement|packing-list|price-book|brochure|contract|roster|audit'.split(
    '|',
  )
const endings = ['pdf', 'csv', 'xlsx', 'xml', 'json', 'txt', 'edi', 'zip']
const cities =
  'Lisbon|Tallinn|Osaka|Bergen|Krakow|Porto|Leeds|Ghent|Turin|Basel|Lagos|Quito|Hanoi|Dakar|Perth|Tampa'.split(
    '|',
  )
const colours = 'amber|crimson|teal|silver|olive|maroon|violet|copper|indigo|beige|scarlet|turquoise'.split(
  '|',
)
const goods = 'lamp|kettle|chair|jacket|helmet|mirror|basket|bottle|blanket|drill|scooter|tripod'.split('|')
const companies =
  'Acme|Globex|Initech|Umbrella|Hooli|Vandelay|Wonka|Stark|Wayne|Cyberdyne|Tyrell|Soylent|Oceanic|Aperture'.split(
    '|',
  )
const letters = 'abcdefghijklmnopqrstuvwxyz'
const base62 = `${letters}${letters.toUpperCase()}0123456789`

export class Values {
  readonly random: SeededRandom

  constructor(random: SeededRandom) {
    this.random = random
  }

  pick<T>(values: readonly T[]): T {
    return this.random.pick(values)
  }

  /** `count` different values, in random order. */
  some<T>(values: readonly T[], count: number): T[] {
    return this.shuffle(values).slice(0, count)
  }

  shuffle<T>(values: readonly T[]): T[] {
    const shuffled = [...values]
    for (let index = shuffled.length - 1; index > 0; index--) {
      const other = this.random.below(index + 1)
      const moved = shuffled[index] as T
      shuffled[index] = shuffled[other] as T
      shuffled[other] = moved
    }
    return shuffled
  }

  chance(share: number): boolean {
    return this.random.next() < share
  }

  number(from: number, until: number): number {
    return from + this.random.below(until - from)
  }

  text(alphabet: string, length: number): string {
    let text = ''
    for (let index = 0; index < length; index++) text += alphabet[this.random.below(alphabet.length)]
    return text
  }

  hex = (length: number): string => this.text('0123456789abcdef', length)
  token = (length = 24): string => this.text(base62, length)
  uuid = (): string =>
    [this.hex(8), this.hex(4), `4${this.hex(3)}`, `a${this.hex(3)}`, this.hex(12)].join('-')
  orderNumber = (): string =>
    `${this.pick(['SO', 'PO', 'INV', 'RMA'])}-${this.number(2019, 2027)}-${this.number(10_000, 99_999)}`
  person = (): string => this.pick(people)
  email = (): string =>
    `${this.person()
      .toLowerCase()
      .replace(' ', this.pick(['.', '_']))}@${this.pick(companies).toLowerCase()}.example`
  city = (): string => this.pick(cities)
  company = (): string => this.pick(companies)
  product = (): string => `${this.pick(colours)}-${this.pick(goods)}`
  /** Without digits. */
  fileName = (): string => `${this.pick(files)}-${this.pick(cities).toLowerCase()}.${this.pick(endings)}`
  path = (): string =>
    `/${this.pick(['var/spool', 'mnt/share', 'data/in', 'tmp'])}/${this.pick(companies).toLowerCase()}/${this.fileName()}`
  ip = (): string =>
    `${this.number(10, 173)}.${this.number(0, 256)}.${this.number(0, 256)}.${this.number(1, 255)}`
  pod = (name: string): string => `${name}-${this.hex(9)}-${this.text('bcdfghjklmnpqrstvwxz2456789', 5)}`
  host = (name: string): string =>
    `${name}-${this.number(1, 40)}.${this.pick(['eu', 'us', 'ap'])}.corp.example`
  time = (): string => {
    const [day, second] = [this.number(1, 29), this.number(0, 60)]
    const two = (value: number) => String(value).padStart(2, '0')
    return `2025-${two(this.number(1, 13))}-${two(day)}T${two(this.number(0, 24))}:${two(this.number(0, 60))}:${two(second)}Z`
  }
  milliseconds = (): string => `${this.number(900, 90_000)}ms`
  amount = (): string => `${this.number(1, 4_000)}.${String(this.number(0, 100)).padStart(2, '0')}`
}

export function createValues(seed: number): Values {
  return new Values(createSeededRandom(seed))
}
