/** Codes in the notations of programs. Each notation is a family whose causes differ only in the code. */
import type { CauseDefinition, World } from '../cause.ts'
import type { Values } from '../values.ts'

type Code = Readonly<{ code: string; text: string }>
type Format = (each: Values, code: Code, thing: string) => string

const http: readonly Code[] = [
  { code: '400', text: 'Bad Request' },
  { code: '401', text: 'Unauthorized' },
  { code: '403', text: 'Forbidden' },
  { code: '404', text: 'Not Found' },
  { code: '409', text: 'Conflict' },
  { code: '422', text: 'Unprocessable Entity' },
  { code: '429', text: 'Too Many Requests' },
  { code: '500', text: 'Internal Server Error' },
  { code: '502', text: 'Bad Gateway' },
  { code: '503', text: 'Service Unavailable' },
  { code: '504', text: 'Gateway Timeout' },
]

const url = (each: Values, thing: string): string =>
  `https://api.${thing}.example/v1/${thing}s/${each.pick([each.uuid(), String(each.number(1, 1e6))])}`

const httpFormats: readonly Format[] = [
  (each, { code, text }, thing) => `HTTP/1.1 ${code} ${text} for ${each.orderNumber()} of ${thing}`,
  (each, { code }) => `upload of ${each.fileName()} failed, status=${code}`,
  (each, { code }) => `unexpected status ${code} after ${each.milliseconds()}`,
  (each, { code }) => `bad response: ${code} (attempt ${each.number(1, 9)})`,
  (_each, { code }) => `Unexpected server response: ${code}`,
  (each, { code, text }) => `HTTP Error ${code}: ${text} [${each.hex(8)}]`,
  (each, { code }, thing) => `Server returned HTTP response code: ${code} for URL: ${url(each, thing)}`,
  (each, { code, text }) => `${code} ${text}: "{"timestamp":"${each.time()}","message":"rejected"}"`,
  (each, { code, text }, thing) => `${code} ${text} from GET ${url(each, thing)}`,
  (each, { code, text }, thing) =>
    `[${code} ${text}] during [GET] to [${url(each, thing)}] [ShopClient#load(String)]: [{"id":"${each.uuid()}"}]`,
  (_each, { code }) => `status ${code} reading ShopClient#load(String)`,
  (_each, { code }) => `the server responded with status ${code}`,
  (each, { code, text }) => `googleapi: Error ${code}: ${text}, request ${each.hex(12)}`,
  (each, { code, text }, thing) => `HTTP status error (${code} ${text}) for url (${url(each, thing)})`,
  (each, { code }) => `non-2xx response from ${each.host('edge')}: ${code}`,
  (each, { code, text }, thing) =>
    `Response{protocol=h2, code=${code}, message=${text}, url=${url(each, thing)}}`,
  (each, { code }, thing) =>
    `{"error":"upstream","status":${code},"path":"/v1/${thing}s/${each.number(1, 9999)}","timestamp":"${each.time()}"}`,
  (each, { code }, thing) => `POST ${url(each, thing)} ${code} ${each.number(3, 900)}ms`,
  (each, { code }, thing) => `GET ${url(each, thing)} returned ${code}`,
  (each, { code }) => `delivery ${each.uuid()} was answered with ${code}`,
  (each, { code }) => `Got ${code} response from partner ${each.company()}`,
  (_each, { code, text }) => `Response status code does not indicate success: ${code} (${text}).`,
  (each, { code }) => `Request to ${each.company()} failed: ${code}`,
]

const posix: readonly Code[] = [
  { code: '111', text: 'Connection refused' },
  { code: '110', text: 'Connection timed out' },
  { code: '104', text: 'Connection reset by peer' },
  { code: '28', text: 'No space left on device' },
  { code: '13', text: 'Permission denied' },
]
const posixFormats: readonly Format[] = [
  (each, { code, text }) => `[Errno ${code}] ${text}: '${each.path()}'`,
  (each, { code, text }) => `${text} (os error ${code}) at ${each.host('store')}`,
  (each, { code, text }) => `(${code}, '${text}') while sending ${each.orderNumber()}`,
  (each, { code }) => `write to ${each.path()} failed, errno=${code}`,
  (each, { text }) => `dial tcp ${each.ip()}:8080: connect: ${text.toLowerCase()}`,
]

const errnos: readonly Code[] = [
  'ECONNREFUSED',
  'ETIMEDOUT',
  'ECONNRESET',
  'EHOSTUNREACH',
  'EPIPE',
  'EACCES',
  'ENOSPC',
].map((code) => ({ code, text: '' }))
const errnoFormats: readonly Format[] = [
  (each, { code }) => `connect ${code} ${each.ip()}:5672`,
  (each, { code }) => `${code}: sftp upload of ${each.fileName()}`,
  (each, { code }) => `request to http://${each.host('stock')}/items failed, reason: ${code}`,
  (each, { code }) => `Failed after ${each.number(1, 20)} attempts (${code})`,
]

const sql: readonly Code[] = [
  { code: '23505', text: 'duplicate key value' },
  { code: '40001', text: 'could not serialize access' },
  { code: '40P01', text: 'deadlock detected' },
  { code: '57014', text: 'canceling statement' },
  { code: '08006', text: 'connection failure' },
  { code: '22001', text: 'value too long' },
]
const sqlFormats: readonly Format[] = [
  (each, { code }, thing) => `pq: cannot store ${thing} ${each.uuid()} (SQLSTATE ${code})`,
  (each, { code }, thing) => `SQLSTATE[${code}]: cannot store ${thing} ${each.number(1, 9999)}`,
  (each, { code }, thing) => `[${code}] cannot store ${thing} of ${each.person()}`,
  (each, { code }, thing) => `cannot store ${thing} ${each.uuid()}; SQLState: ${code}`,
  (each, { code }, thing) =>
    `DB2 SQL Error: SQLCODE=-911, SQLSTATE=${code}, SQLERRMC=${each.number(2, 90)}, ${thing}`,
]

const mysql: readonly Code[] = [
  { code: '1062', text: '' },
  { code: '1205', text: '' },
  { code: '1213', text: '' },
  { code: '1406', text: '' },
]
const mysqlFormats: readonly Format[] = [
  (each, { code }, thing) => `Error ${code}: cannot store ${thing} ${each.uuid()}`,
  (each, { code }, thing) => `ERROR ${code} (HY000): cannot store ${thing} ${each.number(1, 9999)}`,
  (each, { code }, thing) => `cannot store ${thing} ${each.uuid()}, error number ${code}`,
  (each, { code }, thing) => `Msg ${code}, Level 14, State 1: cannot store ${thing} ${each.number(1, 9999)}`,
]

const grpc: readonly Code[] = [
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'RESOURCE_EXHAUSTED',
  'PERMISSION_DENIED',
  'INTERNAL',
].map((code) => ({ code, text: code.toLowerCase().replaceAll('_', ' ') }))
const grpcFormats: readonly Format[] = [
  (each, { code }) => `${code}: call ${each.uuid()} failed`,
  (each, { code }) => `14 ${code}: call ${each.uuid()} failed`,
  (each, { code }) =>
    `<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.${code}\n\tdetails = "call ${each.uuid()} failed"\n>`,
  (each, { code }) => `status: ${code}, message: "call ${each.uuid()} failed", details: []`,
  (each, { code }) => `Status(StatusCode="${toPascal(code)}", Detail="call ${each.uuid()} failed")`,
  (each, { code }) => `rpc error: code = ${toPascal(code)} desc = call ${each.uuid()} failed`,
]

function toPascal(code: string): string {
  return code.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

const sepa: readonly Code[] = ['AC04', 'AM04', 'MS03', 'RR04', 'AG01'].map((code) => ({ code, text: '' }))
const sepaFormats: readonly Format[] = [
  (each, { code }) => `transfer of ${each.amount()} EUR to ${each.person()} was rejected with reason ${code}`,
  (each, { code }) => `bank returned code ${code} for ${each.orderNumber()}`,
]

const aws: readonly Code[] = [
  'ThrottlingException',
  'AccessDeniedException',
  'ResourceNotFoundException',
  'ValidationException',
].map((code) => ({ code, text: '' }))
const awsFormats: readonly Format[] = [
  (each, { code }) =>
    `An error occurred (${code}) when calling the PutItem operation (reached max retries: ${each.number(1, 9)}): request ${each.token(20)}`,
  (each, { code }) =>
    `The request failed (Service: DynamoDb, Status Code: 400, Error Code: ${code}, Request ID: ${each.token(26).toUpperCase()})`,
]

const card: readonly Code[] = [
  'insufficient_funds',
  'expired_card',
  'do_not_honor',
  'lost_card',
  'processing_error',
].map((code) => ({
  code,
  text: '',
}))
const cardFormats: readonly Format[] = [
  (each, { code }) => `payment ${each.token(20)} of ${each.person()} declined: ${code}`,
  (each, { code }) => `Your card was declined. (decline_code=${code}, request ${each.token(14)})`,
  (each, { code }) => `{"error":{"type":"card_error","code":"${code}","charge":"ch_${each.token(16)}"}}`,
]

const exits: readonly Code[] = ['1', '2', '127', '137', '139'].map((code) => ({ code, text: '' }))
const exitFormats: readonly Format[] = [
  (each, { code }) => `converter ended with exit code ${code} on ${each.pod('convert')}`,
  (each, { code }) => `container ${each.hex(12)} terminated: exit status ${code}`,
]

const families: readonly Readonly<{ name: string; codes: readonly Code[]; formats: readonly Format[] }>[] = [
  { name: 'http', codes: http, formats: httpFormats },
  { name: 'posix', codes: posix, formats: posixFormats },
  { name: 'errno', codes: errnos, formats: errnoFormats },
  { name: 'sqlstate', codes: sql, formats: sqlFormats },
  { name: 'mysql', codes: mysql, formats: mysqlFormats },
  { name: 'grpc', codes: grpc, formats: grpcFormats },
  { name: 'sepa', codes: sepa, formats: sepaFormats },
  { name: 'aws', codes: aws, formats: awsFormats },
  { name: 'card', codes: card, formats: cardFormats },
  { name: 'exit', codes: exits, formats: exitFormats },
]

export function createCodeCauses({ values, thing }: World): CauseDefinition[] {
  const name = thing()
  return families.flatMap((family) =>
    family.formats.flatMap((format, index) =>
      values.some(family.codes, 2).map((code) => ({
        cause: `${family.name}-${index}~${code.code}`,
        queue: `${family.name}-${index}-dead`,
        errorClass: '',
        write: (each: Values) => ({ message: format(each, code, name) }),
      })),
    ),
  )
}
