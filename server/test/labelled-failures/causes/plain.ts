/** Failures without a class and a stack, as scripts, gateways and databases report them. */
import type { CauseDefinition, World } from '../cause.ts'
import type { Values } from '../values.ts'

export function createPlainCauses(world: World): CauseDefinition[] {
  const { thing, verb, values } = world
  const [product, person, file, partner] = [thing(), thing(), thing(), thing()]
  const plain: readonly (readonly [string, (each: Values) => string])[] = [
    ['unknown-product', (each) => `unknown product ${each.product()} in ${product} ${each.orderNumber()}`],
    ['no-consent', (each) => `${person} rejected: ${each.person()} gave no consent`],
    ['bad-file', (each) => `cannot read ${file} ${each.fileName()}: header row is missing`],
    ['credit-limit', (each) => `credit limit of ${each.company()} exceeded by ${each.amount()} EUR`],
    [
      'lock',
      (each) =>
        `lock ${partner}/${each.number(1, 900)} is held by ${each.pod('worker')} since ${each.time()}`,
    ],
    [
      'mailbox',
      (each) =>
        `550 5.1.1 <${each.email()}>: Recipient address rejected: User unknown in virtual mailbox table`,
    ],
    [
      'greylisted',
      (each) =>
        `451 4.7.1 <${each.email()}>: Recipient address rejected: Greylisted for ${each.number(10, 900)} seconds`,
    ],
    ['size', (each) => `payload of ${each.number(1_100_000, 9_000_000)} bytes is larger than 1048576 bytes`],
    ['exit', (each) => `process ${each.number(100, 60_000)} on ${each.pod('batch')} exited with code 137`],
    [
      'segfault',
      (each) => `process ${each.number(100, 60_000)} on ${each.pod('batch')} exited with code 139`,
    ],
    ['quota', (each) => `mailbox of ${each.person()} is over quota (${each.number(100, 900)} MB of 100 MB)`],
    ['checksum', (each) => `checksum mismatch: expected ${each.hex(32)}, got ${each.hex(32)}`],
  ]
  const causes = plain.map(([cause, write]) => ({
    cause: `plain.${cause}`,
    queue: 'plain-dead',
    errorClass: '',
    write: (each: Values) => ({ message: write(each) }),
  }))
  return [
    ...causes,
    ...createStatusFamily(world),
    ...createVerbFamily(verb(), verb(), thing()),
    ...createHtmlFamily(values),
  ]
}

function createStatusFamily({ values }: World): CauseDefinition[] {
  const statuses = values.some(
    [
      '404 Not Found',
      '429 Too Many Requests',
      '500 Internal Server Error',
      '502 Bad Gateway',
      '503 Service Unavailable',
      '504 Gateway Timeout',
    ],
    4,
  )
  return statuses.map((status) => ({
    cause: `plain.status~${status.slice(0, 3)}`,
    queue: 'plain-dead',
    errorClass: '',
    write: (each) => ({ message: `webhook answered ${status} after ${each.milliseconds()}` }),
  }))
}

function createVerbFamily(first: string, second: string, thing: string): CauseDefinition[] {
  return [first, second].map((action) => ({
    cause: `plain.${thing}-refused~${action}`,
    queue: 'plain-dead',
    errorClass: '',
    write: (each) => ({
      message: `could not ${action} ${thing} ${each.uuid()}: operation not permitted for ${each.person()}`,
    }),
  }))
}

function createHtmlFamily(values: Values): CauseDefinition[] {
  return values
    .some(['502 Bad Gateway', '504 Gateway Time-out', '413 Request Entity Too Large'], 2)
    .map((status) => ({
      cause: `plain.html~${status.slice(0, 3)}`,
      queue: 'plain-dead',
      errorClass: '',
      write: (each) => ({
        message: `<html>\r\n<head><title>${status}</title></head>\r\n<body>\r\n<center><h1>${status}</h1></center>\r\n<hr><center>${each.pick(['nginx', 'nginx/1.25.4', 'openresty/1.21.4.3'])}</center>\r\n</body>\r\n</html>\r\n`,
      }),
    }))
}
