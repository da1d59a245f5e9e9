import { type CauseDefinition, capital, type World } from '../cause.ts'
import { dotnetStack } from '../stacks.ts'

export function createDotnetCauses(world: World): CauseDefinition[] {
  return [
    ...createSqlFamily(world),
    ...createHttpFamily(world),
    ...createInnerFamily(world),
    createNameCause(world),
    createNullCause(world),
    createCancelledCause(world),
  ]
}

function createSqlFamily({ thing, company, values }: World): CauseDefinition[] {
  const name = capital(thing())
  const errors = values.some(
    [
      [
        'constraint',
        `Violation of UNIQUE KEY constraint 'UQ_${name}_Reference'. Cannot insert duplicate key in object 'dbo.${name}'. The duplicate key value is`,
      ],
      [
        'other-constraint',
        `Violation of UNIQUE KEY constraint 'UQ_${name}_Barcode'. Cannot insert duplicate key in object 'dbo.${name}'. The duplicate key value is`,
      ],
      [
        'third-constraint',
        `Violation of UNIQUE KEY constraint 'UQ_${name}_Email'. Cannot insert duplicate key in object 'dbo.${name}'. The duplicate key value is`,
      ],
    ] as const,
    2,
  )
  return errors.map(([variant, text]) => ({
    cause: `dotnet.${name}-unique~${variant}`,
    queue: `${name.toLowerCase()}-dead`,
    errorClass: 'Microsoft.Data.SqlClient.SqlException',
    write: (each) => ({
      message: `${text} (${each.pick([each.orderNumber(), each.email(), each.token(10)])}).\nThe statement has been terminated.`,
      stack: dotnetStack(each, [
        `${capital(company)}.${name}s.${name}Repository.InsertAsync`,
        `${capital(company)}.${name}s.${name}Consumer.Consume`,
      ]),
    }),
  }))
}

function createHttpFamily({ thing, company, values }: World): CauseDefinition[] {
  const name = capital(thing())
  const statuses = values.some(
    [
      [400, 'Bad Request'],
      [404, 'Not Found'],
      [409, 'Conflict'],
      [429, 'Too Many Requests'],
      [500, 'Internal Server Error'],
    ] as const,
    3,
  )
  return statuses.map(([status, phrase]) => ({
    cause: `dotnet.${name}-http~${status}`,
    queue: `${name.toLowerCase()}-dead`,
    errorClass: 'System.Net.Http.HttpRequestException',
    write: (each) => ({
      message: `Response status code does not indicate success: ${status} (${phrase}).`,
      stack: dotnetStack(each, [
        `${capital(company)}.${name}s.${name}Gateway.SendAsync`,
        `${capital(company)}.${name}s.${name}Consumer.Consume`,
      ]),
    }),
  }))
}

function createInnerFamily({ thing, company }: World): CauseDefinition[] {
  const name = capital(thing())
  const inner = [
    ['timeout', 'System.TimeoutException: The operation has timed out.'],
    [
      'disposed',
      "System.ObjectDisposedException: Cannot access a disposed object. Object name: 'Connection'.",
    ],
  ] as const
  return inner.map(([variant, header]) => ({
    cause: `dotnet.${name}-inner~${variant}`,
    queue: `${name.toLowerCase()}-dead`,
    errorClass: `${capital(company)}.${name}s.${name}Failed`,
    write: (each) => {
      const frames = dotnetStack(each, [`${capital(company)}.${name}s.${name}Service.RunAsync`])
      const library = `   at System.Net.Sockets.Socket.<WaitAsync>g__Wait|${each.number(1, 90)}_0(Task task)`
      const message = `${name} ${each.uuid()} failed`
      return {
        message,
        stack: `${capital(company)}.${name}s.${name}Failed: ${message}\n ---> ${header}\n${library}\n   --- End of inner exception stack trace ---\n${frames}`,
      }
    },
  }))
}

function createNameCause({ company, thing }: World): CauseDefinition {
  const name = capital(thing())
  return {
    cause: 'dotnet.unknown-name',
    queue: 'names-dead',
    errorClass: `${capital(company)}.UnknownCustomerException`,
    write: (each) => ({
      message: `No account for ${each.person()} in ${each.city()}`,
      stack: each.chance(0.6)
        ? dotnetStack(each, [
            `${capital(company)}.${name}s.Directory.Find`,
            `${capital(company)}.${name}s.Consumer.Consume`,
          ])
        : '',
    }),
  }
}

function createNullCause({ company, thing }: World): CauseDefinition {
  const name = capital(thing())
  return {
    cause: 'dotnet.null-reference',
    queue: 'names-dead',
    errorClass: 'System.NullReferenceException',
    write: (each) => ({
      message: 'Object reference not set to an instance of an object.',
      stack: dotnetStack(each, [
        `${capital(company)}.${name}s.Totals.Sum`,
        `${capital(company)}.${name}s.Consumer.Consume`,
      ]),
    }),
  }
}

function createCancelledCause({ company, thing }: World): CauseDefinition {
  const name = capital(thing())
  return {
    cause: 'dotnet.cancelled',
    queue: 'names-dead',
    errorClass: 'System.Threading.Tasks.TaskCanceledException',
    write: (each) => ({
      message: `The request was canceled due to the configured HttpClient.Timeout of ${each.number(5, 100)} seconds elapsing.`,
      stack: dotnetStack(each, [`${capital(company)}.${name}s.Gateway.GetAsync`]),
    }),
  }
}
