/** Messages in other languages and scripts. */
import type { CauseDefinition } from '../cause.ts'
import type { Values } from '../values.ts'

const japaneseNames = ['田中 花子', '佐藤 健', '鈴木 一郎', '高橋 美咲', '伊藤 翔', '渡辺 直子']
const russianNames = [
  'Иванов Сергей',
  'Петрова Анна',
  'Смирнов Олег',
  'Кузнецова Мария',
  'Попов Денис',
  'Соколов Павел',
]
const arabicNames = ['أحمد علي', 'فاطمة حسن', 'محمد سالم', 'ليلى ناصر', 'يوسف كريم', 'مريم عمر']
const chineseCities = ['上海', '北京', '广州', '深圳', '成都', '杭州']

const messages: readonly (readonly [cause: string, queue: string, write: (each: Values) => string])[] = [
  ['japanese.customer', 'jp-dead', (each) => `顧客「${each.pick(japaneseNames)}」が見つかりません`],
  [
    'japanese.timeout',
    'jp-dead',
    (each) => `在庫サービスへの接続がタイムアウトしました (${each.number(1000, 90_000)}ms)`,
  ],
  ['japanese.http~404', 'jp-dead', (each) => `HTTP 404: 注文 ${each.number(1, 99_999)} が存在しません`],
  ['japanese.http~503', 'jp-dead', (each) => `HTTP 503: 注文 ${each.number(1, 99_999)} を処理できません`],
  ['russian.customer', 'ru-dead', (each) => `Клиент ${each.pick(russianNames)} заблокирован`],
  [
    'russian.balance',
    'ru-dead',
    (each) => `Недостаточно средств на счёте ${each.number(1e8, 9e8)}: требуется ${each.amount()} руб.`,
  ],
  [
    'russian.code~17',
    'ru-dead',
    (each) => `Внешняя система вернула код 17 для заказа №${each.number(1, 99_999)}`,
  ],
  [
    'russian.code~42',
    'ru-dead',
    (each) => `Внешняя система вернула код 42 для заказа №${each.number(1, 99_999)}`,
  ],
  ['arabic.customer', 'ar-dead', (each) => `تعذر العثور على العميل ${each.pick(arabicNames)}`],
  ['arabic.payment', 'ar-dead', (each) => `فشل الدفع للطلب ${each.number(1, 99_999)} بسبب انتهاء المهلة`],
  [
    'chinese.city',
    'cn-dead',
    (each) => `仓库 ${each.pick(chineseCities)} 库存不足，缺少 ${each.number(1, 99)} 件`,
  ],
  ['chinese.signature', 'cn-dead', (each) => `签名验证失败：商户号 ${each.number(1e9, 9e9)}`],
  ['korean.file', 'kr-dead', (each) => `파일 ${each.fileName()} 을(를) 열 수 없습니다`],
  ['greek.order', 'gr-dead', (each) => `Η παραγγελία ${each.orderNumber()} δεν βρέθηκε`],
  ['hebrew.account', 'il-dead', (each) => `החשבון ${each.number(1e6, 9e6)} נעול`],
  ['thai.stock', 'th-dead', (each) => `สินค้า ${each.orderNumber()} หมดสต็อก`],
  ['french.address', 'fr-dead', (each) => `Adresse introuvable pour ${each.person()} (« ${each.city()} »)`],
  [
    'spanish.amount',
    'es-dead',
    (each) => `Importe no válido: ${each.amount()} € en el pedido ${each.orderNumber()}`,
  ],
  [
    'polish.contract',
    'pl-dead',
    (each) => `Umowa klienta ${each.person()} wygasła ${each.time().slice(0, 10)}`,
  ],
  ['turkish.stock', 'tr-dead', (each) => `Ürün ${each.product()} stokta yok`],
]

export function createCausesInOtherLanguages(): CauseDefinition[] {
  return messages.map(([cause, queue, write]) => ({
    cause,
    queue,
    errorClass: '',
    write: (each) => ({ message: write(each) }),
  }))
}
