import { type CauseDefinition, capital, type World } from '../cause.ts'
import { goStack } from '../stacks.ts'
import type { Values } from '../values.ts'

export function createGoCauses(world: World): CauseDefinition[] {
  return [
    ...createGrpcFamily(world),
    ...createSqlFamily(world),
    ...createVerbFamily(world),
    ...createPanicFamily(world),
    createLookupCause(world),
    createDecodeCause(world),
    createExecCause(world),
  ]
}

function createGrpcFamily({ thing, verb, values }: World): CauseDefinition[] {
  const [name, action] = [thing(), verb()]
  const statuses = values.some(
    [
      [
        'Unavailable',
        (each: Values) =>
          `connection error: desc = "transport: Error while dialing: dial tcp ${each.ip()}:50051: connect: connection refused"`,
      ],
      ['DeadlineExceeded', () => 'context deadline exceeded'],
      [
        'ResourceExhausted',
        (each: Values) =>
          `grpc: received message larger than max (${each.number(4_200_000, 90_000_000)} vs. 4194304)`,
      ],
      ['PermissionDenied', () => 'caller may not do this'],
      ['NotFound', (each: Values) => `${name} ${each.uuid()} not found`],
    ] as const,
    3,
  )
  return statuses.map(([status, describe]) => ({
    cause: `go.${name}-grpc~${status}`,
    queue: `${name}-dead`,
    errorClass: '*status.Error',
    write: (each) => ({
      message: `${action} ${name} ${each.uuid()}: rpc error: code = ${status} desc = ${describe(each)}`,
    }),
  }))
}

function createSqlFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  const states = values.some(
    [
      ['40001', 'could not serialize access due to read/write dependencies among transactions'],
      ['40P01', 'deadlock detected'],
      ['57014', 'canceling statement due to statement timeout'],
      [
        '23503',
        `insert or update on table "${name}s" violates foreign key constraint "${name}s_owner_id_fkey"`,
      ],
      ['53300', 'sorry, too many clients already'],
    ] as const,
    3,
  )
  return states.map(([state, text]) => ({
    cause: `go.${name}-sqlstate~${state}`,
    queue: `${name}-dead`,
    errorClass: '*pgconn.PgError',
    write: (each) => ({ message: `store ${name} of ${each.person()}: ERROR: ${text} (SQLSTATE ${state})` }),
  }))
}

/** Two actions with one root: they are two causes. */
function createVerbFamily({ thing, verb }: World): CauseDefinition[] {
  const name = thing()
  return [verb(), verb(), verb()].map((action) => ({
    cause: `go.${name}-deadline~${action}`,
    queue: `${name}-dead`,
    errorClass: '*fmt.wrapError',
    write: (each) => ({ message: `${action} ${name} for ${each.orderNumber()}: context deadline exceeded` }),
  }))
}

function createPanicFamily({ company, thing, verb }: World): CauseDefinition[] {
  const name = thing()
  return [verb(), verb()].map((action) => ({
    cause: `go.${name}-panic~${action}`,
    queue: `${name}-dead`,
    errorClass: 'runtime.boundsError',
    write: (each) => ({
      message: `runtime error: index out of range [${each.number(1, 20)}] with length ${each.number(0, 9)}`,
      stack: goStack(each, `github.com/${company}/${name}`, [
        `${name}.(*${capital(name)}).${capital(action)}@internal/${name}/${action}`,
        `worker.(*Runner).handle@internal/worker/runner`,
      ]),
    }),
  }))
}

function createLookupCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'go.no-such-host',
    queue: `${name}-dead`,
    errorClass: '*url.Error',
    write: (each) => ({
      message: `Get "http://${name}.prod.svc.cluster.local/${name}s/${each.number(1, 99_999)}": dial tcp: lookup ${name}.prod.svc.cluster.local on ${each.ip()}:53: no such host`,
    }),
  }
}

function createDecodeCause({ thing }: World): CauseDefinition {
  const name = capital(thing())
  return {
    cause: 'go.json-type',
    queue: 'partner-dead',
    errorClass: '*json.UnmarshalTypeError',
    write: () => ({
      message: `json: cannot unmarshal string into Go struct field ${name}.lines.quantity of type int`,
    }),
  }
}

function createExecCause({ verb }: World): CauseDefinition {
  const action = verb()
  return {
    cause: 'go.exit-status',
    queue: 'partner-dead',
    errorClass: '*exec.ExitError',
    write: (each) => ({ message: `${action} ${each.path()}: exit status 2` }),
  }
}
