/** Messages of well-known libraries and services. Two variants of one message are two causes of a family. */
import type { CauseDefinition } from '../cause.ts'
import { dotnetStack, javaStack, nodeStack, pythonStack } from '../stacks.ts'
import type { Values } from '../values.ts'

type Message = Readonly<{
  name: string
  errorClass: string
  variants: readonly string[]
  write(each: Values, variant: string): string
  stack?: (each: Values, message: string) => string
}>

const java =
  (type: string, ...frames: readonly string[]) =>
  (each: Values, message: string): string =>
    javaStack(each, [{ type, message, frames }])
const node =
  (name: string, ...calls: readonly string[]) =>
  (each: Values, message: string): string =>
    nodeStack(each, `${name}: ${message}`, calls)
const python =
  (name: string, ...calls: readonly string[]) =>
  (each: Values, message: string): string =>
    pythonStack(each, `${name}: ${message}`, calls)

const messages: readonly Message[] = [
  {
    name: 'spring-rest',
    errorClass: 'org.springframework.web.client.HttpServerErrorException',
    variants: ['500 Internal Server Error', '503 Service Unavailable'],
    write: (each, status) =>
      `${status}: "{"traceId":"${each.hex(32)}","path":"/v1/rates/${each.number(1, 900)}"}"`,
    stack: java(
      'org.springframework.web.client.HttpServerErrorException',
      'com.acme.rates.RateClient.load',
      'com.acme.rates.RateJob.run',
    ),
  },
  {
    name: 'feign',
    errorClass: 'feign.FeignException',
    variants: ['404', '503'],
    write: (each, status) =>
      `[${status}] during [POST] to [http://stock:8080/v1/items/${each.number(1, 9999)}] [StockClient#reserve(Item)]: [{"at":"${each.time()}"}]`,
  },
  {
    name: 'hikari',
    errorClass: 'java.sql.SQLTransientConnectionException',
    variants: ['orders', 'reports'],
    write: (each, pool) =>
      `${pool}-pool - Connection is not available, request timed out after ${each.number(30_000, 31_000)}ms (total=${each.number(5, 20)}, active=${each.number(5, 20)}, idle=0, waiting=${each.number(1, 90)})`,
  },
  {
    name: 'hibernate-stale',
    errorClass: 'org.springframework.orm.ObjectOptimisticLockingFailureException',
    variants: ['com.acme.stock.Shelf', 'com.acme.stock.Bin'],
    write: (each, entity) =>
      `Row was updated or deleted by another transaction (or unsaved-value mapping was incorrect) : [${entity}#${each.pick([each.uuid(), String(each.number(1, 9999))])}]`,
  },
  {
    name: 'enum',
    errorClass: 'java.lang.IllegalArgumentException',
    variants: ['com.acme.Status', 'com.acme.Currency'],
    write: (each, type) =>
      `No enum constant ${type}.${each.pick(['OPEN', 'LOST', 'SPLIT', 'VOID', 'HELD', 'TEMP'])}`,
    stack: java('java.lang.IllegalArgumentException', 'com.acme.Mapper.map'),
  },
  {
    name: 'placeholder',
    errorClass: 'java.lang.IllegalArgumentException',
    variants: ['mail.host', 'mail.sender'],
    write: (_each, name) => `Could not resolve placeholder '${name}' in value "\${${name}}"`,
  },
  {
    name: 'bean',
    errorClass: 'org.springframework.beans.factory.NoSuchBeanDefinitionException',
    variants: ['rateService', 'taxService'],
    write: (_each, name) => `No bean named '${name}' available`,
  },
  {
    name: 'kafka-leader',
    errorClass: 'org.apache.kafka.common.errors.TimeoutException',
    variants: ['invoices', 'refunds'],
    write: (each, topic) =>
      `Expiring ${each.number(1, 90)} record(s) for ${topic}-${each.number(0, 30)}:${each.number(30_000, 130_000)} ms has passed since batch creation`,
  },
  {
    name: 'elastic',
    errorClass: 'ElasticsearchStatusException',
    variants: ['version_conflict_engine_exception', 'mapper_parsing_exception'],
    write: (each, type) =>
      `Elasticsearch exception [type=${type}, reason=[${each.token(20)}]: rejected (shard ${each.number(0, 9)})]`,
  },
  {
    name: 'redis',
    errorClass: 'ReplyError',
    variants: [
      'READONLY You cannot write against a read only replica',
      'LOADING Redis is loading the dataset in memory',
      'OOM command not allowed when used memory > maxmemory',
    ],
    write: (_each, text) => `${text}.`,
    stack: node('ReplyError', 'Cache.set@cache/redis'),
  },
  {
    name: 'prisma',
    errorClass: 'PrismaClientKnownRequestError',
    variants: ['email', 'phone'],
    write: (each, field) =>
      `Invalid \`prisma.user.create()\` invocation in /app/dist/users.js:${each.number(10, 300)}:20\n\n\nUnique constraint failed on the fields: (\`${field}\`)`,
    stack: node('PrismaClientKnownRequestError', 'Orders.update@orders/orders'),
  },
  {
    name: 'typeorm',
    errorClass: 'QueryFailedError',
    variants: ['uq_user_login', 'uq_user_mail'],
    write: (_each, constraint) => `duplicate key value violates unique constraint "${constraint}"`,
    stack: node('QueryFailedError', 'Users.create@users/users'),
  },
  {
    name: 'stripe',
    errorClass: 'StripeInvalidRequestError',
    variants: ['customer', 'payment_intent', 'price'],
    write: (each, kind) => `No such ${kind}: '${kind.slice(0, 3)}_${each.token(14)}'`,
  },
  {
    name: 'undefined-function',
    errorClass: 'TypeError',
    variants: ['order.getTotal', 'order.getTax'],
    write: (_each, name) => `${name} is not a function`,
    stack: node('TypeError', 'sum@orders/totals'),
  },
  {
    name: 'module',
    errorClass: 'Error',
    variants: ['./tariffs', './labels'],
    write: (_each, name) => `Cannot find module '${name}'`,
  },
  {
    name: 'jwt',
    errorClass: 'JsonWebTokenError',
    variants: ['jwt expired', 'jwt malformed', 'invalid signature', 'jwt audience invalid'],
    write: (_each, text) => text,
    stack: node('JsonWebTokenError', 'verify@auth/verify'),
  },
  {
    name: 'boto',
    errorClass: 'botocore.exceptions.ClientError',
    variants: ['NoSuchKey', 'AccessDenied', 'SlowDown'],
    write: (each, code) =>
      `An error occurred (${code}) when calling the GetObject operation: request ${each.token(16)} was refused`,
    stack: python('botocore.exceptions.ClientError', 'load@stores/files'),
  },
  {
    name: 'attribute',
    errorClass: 'AttributeError',
    variants: ['price', 'owner'],
    write: (_each, name) => `'NoneType' object has no attribute '${name}'`,
    stack: python('AttributeError', 'price@tasks/prices'),
  },
  {
    name: 'argument',
    errorClass: 'TypeError',
    variants: ['currency', 'country'],
    write: (_each, name) => `create_order() missing 1 required positional argument: '${name}'`,
    stack: python('TypeError', 'run@tasks/orders'),
  },
  {
    name: 'import',
    errorClass: 'ModuleNotFoundError',
    variants: ['orders.tax', 'orders.fees'],
    write: (_each, name) => `No module named '${name}'`,
    stack: python('ModuleNotFoundError', 'run@tasks/orders'),
  },
  {
    name: 'operand',
    errorClass: 'TypeError',
    variants: ["'int' and 'str'", "'NoneType' and 'int'"],
    write: (_each, types) => `unsupported operand type(s) for +: ${types}`,
    stack: python('TypeError', 'sum@tasks/orders'),
  },
  {
    name: 'django',
    errorClass: 'django.core.exceptions.ValidationError',
    variants: ['email', 'phone'],
    write: (_each, field) => `{'${field}': ['This field cannot be blank.']}`,
  },
  {
    name: 'pymysql',
    errorClass: 'pymysql.err.OperationalError',
    variants: [
      "(1205, 'Lock wait timeout exceeded; try restarting transaction')",
      "(1213, 'Deadlock found when trying to get lock; try restarting transaction')",
      "(2013, 'Lost connection to MySQL server during query')",
    ],
    write: (_each, text) => text,
    stack: python('pymysql.err.OperationalError', 'save@stores/orders'),
  },
  {
    name: 'urllib',
    errorClass: 'urllib.error.HTTPError',
    variants: ['HTTP Error 403: Forbidden', 'HTTP Error 429: Too Many Requests'],
    write: (_each, text) => text,
    stack: python('urllib.error.HTTPError', 'fetch@clients/rates'),
  },
  {
    name: 'go-template',
    errorClass: '*errors.errorString',
    variants: ['template', 'layout'],
    write: (each, kind) => `load ${kind} ${each.fileName()}: file does not exist`,
  },
  {
    name: 'go-x509',
    errorClass: '*url.Error',
    variants: ['certificate has expired or is not yet valid', 'certificate signed by unknown authority'],
    write: (each, text) =>
      `Post "https://gate${each.number(1, 9)}.bank.example/pay/${each.number(1, 9999)}": tls: failed to verify certificate: x509: ${text}`,
  },
  {
    name: 'go-mysql',
    errorClass: '*mysql.MySQLError',
    variants: ['Error 1062 (23000): Duplicate entry', 'Error 1452 (23000): Cannot add or update a child row'],
    write: (each, text) => `save shipment ${each.uuid()}: ${text} '${each.token(9)}'`,
  },
  {
    name: 'go-validator',
    errorClass: 'validator.ValidationErrors',
    variants: ['required', 'email'],
    write: (_each, tag) =>
      `Key: 'Order.Contact' Error:Field validation for 'Contact' failed on the '${tag}' tag`,
  },
  {
    name: 'dotnet-key',
    errorClass: 'System.Collections.Generic.KeyNotFoundException',
    variants: ['region', 'tenant'],
    write: (_each, key) => `The given key '${key}' was not present in the dictionary.`,
    stack: (each) => dotnetStack(each, ['Acme.Routing.Router.Route']),
  },
  {
    name: 'dotnet-sql',
    errorClass: 'Microsoft.Data.SqlClient.SqlException',
    variants: ["Invalid object name 'dbo.Fees'.", "Invalid column name 'Discount'."],
    write: (_each, text) => text,
    stack: (each) => dotnetStack(each, ['Acme.Fees.FeeStore.Load']),
  },
  {
    name: 'dotnet-json',
    errorClass: 'System.Text.Json.JsonException',
    variants: ['$.lines', '$.total'],
    write: (each, path) =>
      `The JSON value could not be converted to System.Decimal. Path: ${path} | LineNumber: ${each.number(0, 90)} | BytePositionInLine: ${each.number(0, 900)}.`,
    stack: (each) => dotnetStack(each, ['Acme.Fees.FeeReader.Read']),
  },
  {
    name: 'azure',
    errorClass: 'Azure.RequestFailedException',
    variants: ['BlobNotFound', 'LeaseIdMissing', 'ServerBusy'],
    write: (each, code) =>
      `The request failed.\nRequestId:${each.uuid()}\nTime:${each.time()}\nStatus: 409 (Conflict)\nErrorCode: ${code}`,
  },
  {
    name: 'php-curl',
    errorClass: 'GuzzleHttp\\Exception\\ConnectException',
    variants: ['6', '28', '35'],
    write: (each, code) =>
      `cURL error ${code}: request failed after ${each.number(1000, 30_000)} milliseconds (see https://curl.haxx.se/libcurl/c/libcurl-errors.html) for https://${each.company().toLowerCase()}.vendor.example/api`,
  },
  {
    name: 'php-undefined',
    errorClass: 'ErrorException',
    variants: ['total', 'items'],
    write: (_each, key) => `Undefined array key "${key}"`,
  },
  {
    name: 'rails-param',
    errorClass: 'ActionController::ParameterMissing',
    variants: ['order', 'customer'],
    write: (_each, name) => `param is missing or the value is empty: ${name}`,
  },
  {
    name: 'rails-invalid',
    errorClass: 'ActiveRecord::RecordInvalid',
    variants: ['Email has already been taken', 'Phone is too short (minimum is 6 characters)'],
    write: (_each, text) => `Validation failed: ${text}`,
  },
  {
    name: 'rust-serde',
    errorClass: 'serde_json::Error',
    variants: [
      'unknown field `colour`, expected one of `id`, `name`',
      'invalid type: string "x", expected u32',
    ],
    write: (each, text) => `${text} at line ${each.number(1, 90)} column ${each.number(1, 200)}`,
  },
  {
    name: 'rust-sqlx',
    errorClass: 'sqlx::Error',
    variants: ['PoolTimedOut', 'RowNotFound'],
    write: (each, kind) => `load wallet ${each.uuid()}: ${kind}`,
  },
  {
    name: 'ldap',
    errorClass: 'javax.naming.AuthenticationException',
    variants: ['52e', '775'],
    write: (_each, data) =>
      `[LDAP: error code 49 - 80090308: LdapErr: DSID-0C090439, comment: AcceptSecurityContext error, data ${data}, v4563]`,
  },
  {
    name: 'ftp',
    errorClass: 'FtpError',
    variants: ['530 Login incorrect.', '550 File not found.', '421 Too many connections.'],
    write: (_each, text) => text,
  },
  {
    name: 'soap',
    errorClass: 'SOAPFaultException',
    variants: ['ns1:InvalidTariff', 'ns1:UnknownClient'],
    write: (each, code) =>
      `<soap:Fault><faultcode>${code}</faultcode><faultstring>rejected ${each.uuid()}</faultstring></soap:Fault>`,
  },
  {
    name: 'graphql',
    errorClass: 'GraphQLError',
    variants: ['price', 'stock'],
    write: (_each, field) => `Cannot return null for non-nullable field Product.${field}.`,
  },
  {
    name: 'k8s',
    errorClass: '',
    variants: ['OOMKilled', 'ImagePullBackOff'],
    write: (each, reason) =>
      `container of pod ${each.pod('import')} is in state ${reason} since ${each.time()}`,
  },
  {
    name: 'cron',
    errorClass: '',
    variants: ['nightly-export', 'hourly-import'],
    write: (each, job) => `job ${job} did not finish within ${each.number(10, 90)} minutes`,
  },
  {
    name: 'sap',
    errorClass: 'JCoException',
    variants: ['RFC_ERROR_COMMUNICATION', 'RFC_ERROR_LOGON_FAILURE'],
    write: (each, code) =>
      `(102) ${code}: Connect to SAP gateway failed, host ${each.host('sap')}, time ${each.time()}`,
  },
  {
    name: 'twilio',
    errorClass: 'RestException',
    variants: ['21211', '21610'],
    write: (each, code) =>
      `[HTTP 400] Failed to create record / error ${code}: The number +${each.number(1e9, 9e9)} was refused`,
  },
]

export function createFrameworkCauses(): CauseDefinition[] {
  return messages.flatMap(({ name, errorClass, variants, write, stack }) =>
    variants.map((variant) => ({
      cause: `${name}~${variant}`,
      queue: `${name}-dead`,
      errorClass,
      write: (each) => {
        const message = write(each, variant)
        return stack === undefined ? { message } : { message, stack: stack(each, message) }
      },
    })),
  )
}
