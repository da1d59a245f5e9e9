/** Ruby, PHP and Rust. */
import { type CauseDefinition, capital, type World } from '../cause.ts'
import { phpStack, rubyStack, rustStack } from '../stacks.ts'

export function createScriptingCauses(world: World): CauseDefinition[] {
  return [
    ...createRubyRecordFamily(world),
    ...createRubyMethodFamily(world),
    createRubyNetworkCause(world),
    ...createPhpStatusFamily(world),
    ...createPhpSqlFamily(world),
    createPhpTypeCause(world),
    ...createRustFamily(world),
    createRustPanic(world),
  ]
}

function createRubyRecordFamily({ thing }: World): CauseDefinition[] {
  return [thing(), thing()].map((name) => ({
    cause: `ruby.record~${name}`,
    queue: 'ruby-dead',
    errorClass: 'ActiveRecord::RecordNotFound',
    write: (each) => ({
      message: `Couldn't find ${capital(name)} with 'id'=${each.pick([String(each.number(1, 1e6)), each.uuid()])}`,
      stack: rubyStack(each, ['perform@app/jobs/expire_job']),
    }),
  }))
}

function createRubyMethodFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  return values.some(['total', 'address', 'locale', 'upcase'], 2).map((method) => ({
    cause: `ruby.${name}-nil~${method}`,
    queue: 'ruby-dead',
    errorClass: 'NoMethodError',
    write: (each) => ({
      message: `undefined method \`${method}' for nil:NilClass`,
      stack: rubyStack(each, [`build@app/services/${name}_builder`, 'perform@app/jobs/build_job']),
    }),
  }))
}

function createRubyNetworkCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'ruby.open-timeout',
    queue: 'ruby-dead',
    errorClass: 'Net::OpenTimeout',
    write: (each) => ({
      message: `Failed to open TCP connection to ${each.host(name)}:443 (execution expired)`,
      stack: rubyStack(each, [`push@app/services/${name}_client`]),
    }),
  }
}

function createPhpStatusFamily({ thing, values }: World): CauseDefinition[] {
  const name = capital(thing())
  const statuses = values.some(
    [
      ['Client', 401, 'Unauthorized'],
      ['Client', 404, 'Not Found'],
      ['Client', 422, 'Unprocessable Content'],
      ['Server', 500, 'Internal Server Error'],
      ['Server', 503, 'Service Unavailable'],
    ] as const,
    3,
  )
  return statuses.map(([side, status, phrase]) => ({
    cause: `php.${name}-status~${status}`,
    queue: 'php-dead',
    errorClass: `GuzzleHttp\\Exception\\${side}Exception`,
    write: (each) => ({
      message: `${side} error: \`POST https://${name.toLowerCase()}.vendor.example/api/${name.toLowerCase()}s/${each.number(1, 99_999)}/sync\` resulted in a \`${status} ${phrase}\` response:\n{"error":"${each.company()} rejected ${each.person()}","request_id":"${each.uuid()}"}\n`,
      stack: phpStack(each, [`App\\Services\\${name}Client->sync`, `App\\Jobs\\Sync${name}->handle`]),
    }),
  }))
}

function createPhpSqlFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  const errors = values.some(
    [
      [
        '23000',
        "Integrity constraint violation: 1062 Duplicate entry '%' for key '" +
          `${name}s.${name}s_code_unique'`,
      ],
      [
        '40001',
        'Serialization failure: 1213 Deadlock found when trying to get lock; try restarting transaction',
      ],
      ['22001', "String data, right truncated: 1406 Data too long for column 'note' at row 1"],
    ] as const,
    2,
  )
  return errors.map(([state, text]) => ({
    cause: `php.${name}-sqlstate~${state}`,
    queue: 'php-dead',
    errorClass: 'Illuminate\\Database\\QueryException',
    write: (each) => ({
      message: `SQLSTATE[${state}]: ${text.replace('%', each.token(8))} (Connection: mysql, SQL: insert into \`${name}s\` (\`code\`, \`note\`) values (${each.token(8)}, ${each.person()}))`,
      stack: phpStack(each, [
        `App\\Models\\${capital(name)}->store`,
        `App\\Jobs\\Store${capital(name)}->handle`,
      ]),
    }),
  }))
}

function createPhpTypeCause({ thing }: World): CauseDefinition {
  const name = capital(thing())
  return {
    cause: 'php.type',
    queue: 'php-dead',
    errorClass: 'TypeError',
    write: (each) => ({
      message: `App\\Services\\${name}Pricer::price(): Argument #1 ($line) must be of type App\\Models\\Line, null given, called in /var/www/releases/${each.number(20_240_101, 20_261_231)}/app/Jobs/Price${name}.php on line ${each.number(10, 90)}`,
      stack: phpStack(each, [`App\\Services\\${name}Pricer->price`, `App\\Jobs\\Price${name}->handle`]),
    }),
  }
}

/** Errors without a stack: the chain is part of the message. */
function createRustFamily({ thing, verb }: World): CauseDefinition[] {
  const [name, action] = [thing(), verb()]
  const roots = [
    'connection closed before message completed',
    'invalid peer certificate: Expired',
    'tcp connect error: Connection refused (os error 111)',
  ]
  return roots.map((root, index) => ({
    cause: `rust.${name}-request~${index}`,
    queue: 'rust-dead',
    errorClass: 'reqwest::Error',
    write: (each) => ({
      message: `failed to ${action} ${name} ${each.uuid()}: error sending request for url (https://${name}.example/v1/${name}s/${each.number(1, 9999)}): client error (SendRequest): ${root}`,
    }),
  }))
}

function createRustPanic({ thing, verb }: World): CauseDefinition {
  const [name, action] = [thing(), verb()]
  return {
    cause: 'rust.panic',
    queue: 'rust-dead',
    errorClass: 'panic',
    write: (each) => {
      const message = `called \`Result::unwrap()\` on an \`Err\` value: ParseIntError { kind: InvalidDigit }`
      return {
        message,
        stack: rustStack(
          each,
          `thread 'worker-${each.number(1, 16)}' panicked at src/${name}.rs:${each.number(9, 300)}:14:\n${message}`,
          [`app::${name}::${action}`, `app::worker::run`],
        ),
      }
    },
  }
}
