import { type CauseDefinition, capital, type World } from '../cause.ts'
import { javaStack } from '../stacks.ts'
import type { Values } from '../values.ts'

export function createJavaCauses(world: World): CauseDefinition[] {
  return [
    ...createConstraintFamily(world),
    ...createPropertyFamily(world),
    ...createRootFamily(world),
    ...createThrowerFamily(world),
    ...createVendorFamily(world),
    createNullPointer(world),
    createCustomerCause(world),
    createParseCause(world),
    createTimeoutCause(world),
    createClassCast(world),
  ]
}

/** One statement that violates different constraints. */
function createConstraintFamily({ company, thing, verb, values }: World): CauseDefinition[] {
  const table = thing()
  const type = 'org.springframework.dao.DataIntegrityViolationException'
  const frames = [
    `com.${company}.${table}.${capital(table)}Store.save`,
    `com.${company}.${table}.${capital(verb())}Listener.on`,
  ]
  return values.some(['owner', 'email', 'external_ref', 'slot', 'token'], 3).map((column) => ({
    cause: `java.${table}-unique~${column}`,
    queue: `${table}-dead`,
    errorClass: type,
    write: (each) => {
      const message = `could not execute statement [ERROR: duplicate key value violates unique constraint "${table}_${column}_key"\n  Detail: Key (${column})=(${valueFor(each, column)}) already exists.] [insert into ${table} (${column},created_at,id) values (?,?,?)]`
      const root = message.slice(message.indexOf('ERROR'), message.indexOf(']'))
      return {
        message,
        stack: javaStack(each, [
          {
            type,
            message,
            frames,
            library: ['org.springframework.orm.jpa.vendor.HibernateJpaDialect.convert'],
          },
          {
            type: 'org.postgresql.util.PSQLException',
            message: root,
            frames: [],
            library: ['org.postgresql.core.v3.QueryExecutorImpl.receive'],
          },
        ]),
      }
    },
  }))
}

function valueFor(values: Values, column: string): string {
  if (column === 'email') return values.email()
  if (column === 'owner') return values.person()
  return column === 'slot' ? String(values.number(1, 9_000)) : values.token()
}

/** Unknown fields of one message. */
function createPropertyFamily({ company, thing, values }: World): CauseDefinition[] {
  const document = capital(thing())
  const type = 'com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException'
  return values.some(['giftWrap', 'loyaltyTier', 'channel', 'vatNumber', 'promoLabel'], 2).map((field) => ({
    cause: `java.unknown-property~${field}`,
    queue: 'documents-dead',
    errorClass: type,
    write: (each) => {
      const source = `{"id":"${each.uuid()}","name":"${each.person()}","at":"${each.time()}"`
      const message = `Unrecognized field "${field}" (class com.${company}.api.${document}), not marked as ignorable (3 known properties: "id", "name", "at"])\n at [Source: (String)"${source}"[truncated ${each.number(20, 4000)} chars]; line: 1, column: ${each.number(20, 900)}] (through reference chain: com.${company}.api.${document}["${field}"])`
      return {
        message,
        stack: javaStack(each, [
          {
            type,
            message,
            frames: [
              `com.${company}.api.${document}Reader.read`,
              `com.${company}.api.${document}Consumer.accept`,
            ],
            library: ['com.fasterxml.jackson.databind.DeserializationContext.handleUnknownProperty'],
          },
        ]),
      }
    },
  }))
}

/** One failure with different root causes. */
function createRootFamily({ company, thing, verb }: World): CauseDefinition[] {
  const [name, action] = [thing(), verb()]
  const type = `com.${company}.${name}.${capital(name)}UnavailableException`
  const roots: readonly Readonly<{ variant: string; type: string; message: (values: Values) => string }>[] = [
    {
      variant: 'refused',
      type: 'java.net.ConnectException',
      message: (each) => `Connection refused: ${each.host(name)}/${each.ip()}:8443`,
    },
    {
      variant: 'certificate',
      type: 'javax.net.ssl.SSLHandshakeException',
      message: () => 'PKIX path validation failed: validity check failed',
    },
    { variant: 'reset', type: 'java.net.SocketException', message: () => 'Connection reset' },
  ]
  return roots.map((root) => ({
    cause: `java.${name}-unavailable~${root.variant}`,
    queue: `${name}-dead`,
    errorClass: type,
    write: (each) => ({
      message: `Cannot ${action} ${name}`,
      stack: javaStack(each, [
        {
          type,
          message: `Cannot ${action} ${name}`,
          frames: [
            `com.${company}.${name}.${capital(name)}Client.${action}`,
            `com.${company}.${name}.${capital(name)}Job.run`,
          ],
        },
        {
          type: root.type,
          message: root.message(each),
          frames: [],
          library: [
            'java.base/sun.nio.ch.Net.connect',
            'org.apache.http.impl.conn.DefaultHttpClientConnectionOperator.connect',
          ],
        },
      ]),
    }),
  }))
}

/** Equal messages that different functions throw. */
function createThrowerFamily({ company, thing, verb }: World): CauseDefinition[] {
  const name = thing()
  return [verb(), verb()].map((action) => ({
    cause: `java.${name}-closed~${action}`,
    queue: `${name}-dead`,
    errorClass: 'java.lang.IllegalStateException',
    write: (each) => ({
      message: 'Session is closed',
      stack: javaStack(each, [
        {
          type: 'java.lang.IllegalStateException',
          message: 'Session is closed',
          frames: [
            `com.${company}.${name}.${capital(action)}Step.execute`,
            `com.${company}.${name}.Pipeline.run`,
          ],
        },
      ]),
    }),
  }))
}

function createVendorFamily({ company, thing, values }: World): CauseDefinition[] {
  const name = thing()
  const codes = values.some(
    [
      ['ORA-00054', 'resource busy and acquire with NOWAIT specified or timeout expired'],
      ['ORA-01438', 'value larger than specified precision allowed for this column'],
      ['ORA-02291', 'integrity constraint violated - parent key not found'],
      ['ORA-12541', 'Cannot connect. No listener at host'],
    ] as const,
    3,
  )
  return codes.map(([code, text]) => ({
    cause: `java.${name}-oracle~${code}`,
    queue: `${name}-dead`,
    errorClass: 'java.sql.SQLException',
    write: (each) => ({
      message: `${code}: ${text}`,
      stack: javaStack(each, [
        {
          type: 'java.sql.SQLException',
          message: `${code}: ${text}`,
          frames: [`com.${company}.${name}.LedgerDao.insert`],
          library: ['oracle.jdbc.driver.T4CTTIoer11.processError'],
        },
      ]),
    }),
  }))
}

function createNullPointer({ company, thing }: World): CauseDefinition {
  const name = capital(thing())
  const message = `Cannot invoke "com.${company}.model.${name}.getOwner()" because "line" is null`
  return {
    cause: 'java.null-pointer',
    queue: 'documents-dead',
    errorClass: 'java.lang.NullPointerException',
    write: (each) => ({
      message,
      stack: javaStack(each, [
        {
          type: 'java.lang.NullPointerException',
          message,
          frames: [
            `com.${company}.model.${name}Mapper.lambda$map$${each.number(0, 9)}`,
            `com.${company}.model.${name}Mapper.map`,
          ],
        },
      ]),
    }),
  }
}

/** Names without digits in the message, and no stack. */
function createCustomerCause({ company }: World): CauseDefinition {
  return {
    cause: 'java.blocked-customer',
    queue: 'accounts-dead',
    errorClass: `com.${company}.accounts.BlockedCustomerException`,
    write: (each) => ({
      message: `Customer ${each.person()} of ${each.company()} is blocked since ${each.time()}`,
    }),
  }
}

function createParseCause({ company }: World): CauseDefinition {
  const type = 'java.time.format.DateTimeParseException'
  return {
    cause: 'java.date-parse',
    queue: 'documents-dead',
    errorClass: type,
    write: (each) => {
      const value = each.pick(['tomorrow', '31/12', '', '2025-13-40', 'next week', '0000-00-00', 'n/a'])
      const message = `Text '${value}' could not be parsed at index ${each.number(0, 9)}`
      return {
        message,
        stack: javaStack(each, [
          {
            type,
            message,
            frames: [`com.${company}.imports.RowReader.readDate`, `com.${company}.imports.RowReader.read`],
            library: ['java.base/java.time.format.DateTimeFormatter.parseResolved0'],
          },
        ]),
      }
    },
  }
}

function createTimeoutCause({ company, thing }: World): CauseDefinition {
  const topic = `${thing()}-events`
  const type = 'org.apache.kafka.common.errors.TimeoutException'
  return {
    cause: 'java.kafka-metadata',
    queue: 'accounts-dead',
    errorClass: type,
    write: (each) => {
      const message = `Topic ${topic} not present in metadata after ${each.number(20_000, 90_000)} ms.`
      return {
        message,
        stack: javaStack(each, [{ type, message, frames: [`com.${company}.events.Publisher.publish`] }]),
      }
    },
  }
}

function createClassCast({ company, thing }: World): CauseDefinition {
  const [from, to] = [capital(thing()), capital(thing())]
  const type = 'java.lang.ClassCastException'
  return {
    cause: 'java.class-cast',
    queue: 'accounts-dead',
    errorClass: type,
    write: (each) => {
      const message = `class com.${company}.events.${from} cannot be cast to class com.${company}.events.${to} (com.${company}.events.${from} and com.${company}.events.${to} are in unnamed module of loader org.springframework.boot.loader.launch.LaunchedClassLoader @${each.hex(8)})`
      return {
        message,
        stack: javaStack(each, [{ type, message, frames: [`com.${company}.events.Router.route`] }]),
      }
    },
  }
}
