import { type CauseDefinition, capital, type World } from '../cause.ts'
import { pythonStack } from '../stacks.ts'

export function createPythonCauses(world: World): CauseDefinition[] {
  return [
    ...createDatabaseFamily(world),
    ...createFieldFamily(world),
    ...createKeyFamily(world),
    ...createHttpFamily(world),
    createTimeoutCause(world),
    createDecodeCause(world),
    createTemplateCause(world),
    createChainedCause(world),
  ]
}

/** SQLSTATE and constraint names, with the values in the message. */
function createDatabaseFamily({ thing, verb, values }: World): CauseDefinition[] {
  const [table, action] = [thing(), verb()]
  const variants = values.some(
    [
      [
        'not-null',
        (column: string) =>
          `(psycopg2.errors.NotNullViolation) null value in column "${column}" of relation "${table}" violates not-null constraint`,
      ],
      [
        'foreign-key',
        () =>
          `(psycopg2.errors.ForeignKeyViolation) insert or update on table "${table}" violates foreign key constraint "${table}_owner_fkey"`,
      ],
      [
        'check',
        () =>
          `(psycopg2.errors.CheckViolation) new row for relation "${table}" violates check constraint "${table}_amount_check"`,
      ],
    ] as const,
    2,
  )
  return variants.map(([variant, write]) => ({
    cause: `python.${table}-database~${variant}`,
    queue: `${table}-dead`,
    errorClass: 'sqlalchemy.exc.IntegrityError',
    write: (each) => {
      const message = `${write('currency')}\nDETAIL:  Failing row contains (${each.uuid()}, ${each.person()}, null, ${each.amount()}).\n\n[SQL: INSERT INTO ${table} (id, owner, currency, amount) VALUES (%(id)s, %(owner)s, %(currency)s, %(amount)s)]\n[parameters: {'id': '${each.uuid()}', 'owner': '${each.person()}'}]\n(Background on this error at: https://sqlalche.me/e/20/gkpj)`
      return {
        message,
        stack: pythonStack(each, `sqlalchemy.exc.IntegrityError: ${message}`, [
          `${action}_${table}@tasks/${table}s`,
          `run@tasks/${table}s`,
        ]),
      }
    },
  }))
}

function createFieldFamily({ thing, values }: World): CauseDefinition[] {
  const model = capital(thing())
  return values.some(['due_date', 'quantity', 'birthday', 'postcode'], 2).map((field) => ({
    cause: `python.${model}-field~${field}`,
    queue: 'models-dead',
    errorClass: 'pydantic_core._pydantic_core.ValidationError',
    write: (each) => {
      const message = `1 validation error for ${model}\n${field}\n  Input should be a valid integer, unable to parse string as an integer [type=int_parsing, input_value='${each.pick([each.city(), each.person(), each.token(6), '?'])}', input_type=str]\n    For further information visit https://errors.pydantic.dev/2.${each.number(5, 11)}/v/int_parsing`
      return { message, stack: pythonStack(each, message, [`parse@models/${model.toLowerCase()}`]) }
    },
  }))
}

function createKeyFamily({ thing, verb, values }: World): CauseDefinition[] {
  const [name, action] = [thing(), verb()]
  return values.some(['price', 'currency', 'recipient', 'weight'], 2).map((key) => ({
    cause: `python.${name}-key~${key}`,
    queue: `${name}-dead`,
    errorClass: 'KeyError',
    write: (each) => ({
      message: `'${key}'`,
      stack: pythonStack(each, `KeyError: '${key}'`, [
        `${action}@workers/${name}`,
        `on_message@workers/consumer`,
      ]),
    }),
  }))
}

function createHttpFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  const statuses = values.some(
    [
      [403, 'Client Error: Forbidden'],
      [404, 'Client Error: Not Found'],
      [422, 'Client Error: Unprocessable Entity'],
      [500, 'Server Error: Internal Server Error'],
      [503, 'Server Error: Service Unavailable'],
    ] as const,
    3,
  )
  return statuses.map(([status, phrase]) => ({
    cause: `python.${name}-http~${status}`,
    queue: `${name}-dead`,
    errorClass: 'requests.exceptions.HTTPError',
    write: (each) => {
      const message = `${status} ${phrase} for url: https://api.${name}.example/v1/${name}s/${each.uuid()}${each.chance(0.3) ? `?expand=${each.city().toLowerCase()}` : ''}`
      return {
        message,
        stack: pythonStack(each, `requests.exceptions.HTTPError: ${message}`, [
          `fetch@clients/${name}`,
          `sync@tasks/${name}`,
        ]),
      }
    },
  }))
}

function createTimeoutCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'python.pool-timeout',
    queue: `${name}-dead`,
    errorClass: 'requests.exceptions.ConnectTimeout',
    write: (each) => {
      const message = `HTTPSConnectionPool(host='${name}.internal.example', port=443): Max retries exceeded with url: /v1/${name}s/${each.number(1, 99_999)} (Caused by ConnectTimeoutError(<urllib3.connection.HTTPSConnection object at 0x${each.hex(12)}>, 'Connection to ${name}.internal.example timed out. (connect timeout=${each.number(2, 30)})'))`
      return {
        message,
        stack: pythonStack(each, `requests.exceptions.ConnectTimeout: ${message}`, [`call@clients/${name}`]),
      }
    },
  }
}

function createDecodeCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'python.decode',
    queue: `${name}-dead`,
    errorClass: 'UnicodeDecodeError',
    write: (each) => {
      const message = `'utf-8' codec can't decode byte 0x${each.hex(2)} in position ${each.number(0, 9000)}: invalid start byte`
      return {
        message,
        stack: pythonStack(each, `UnicodeDecodeError: ${message}`, [`read_rows@imports/${name}`]),
      }
    },
  }
}

/** A name of a template that no rule knows, and no stack. */
function createTemplateCause({ company }: World): CauseDefinition {
  return {
    cause: 'python.missing-template',
    queue: 'mail-dead',
    errorClass: `${company}.mail.TemplateMissing`,
    write: (each) => ({ message: `no template for file ${each.fileName()} of customer ${each.person()}` }),
  }
}

function createChainedCause({ thing, verb }: World): CauseDefinition {
  const [name, action] = [thing(), verb()]
  return {
    cause: 'python.chained',
    queue: `${name}-dead`,
    errorClass: 'JobFailed',
    write: (each) => {
      const inner = pythonStack(
        each,
        `redis.exceptions.ConnectionError: Error 111 connecting to ${each.host('cache')}:6379. Connection refused.`,
        [`get@stores/${name}`],
      )
      const before = `${inner}\n\nThe above exception was the direct cause of the following exception:\n\n`
      const message = `could not ${action} ${name} ${each.uuid()}`
      return { message, stack: pythonStack(each, `JobFailed: ${message}`, [`run@jobs/${name}`], before) }
    },
  }
}
