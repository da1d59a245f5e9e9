import { type CauseDefinition, capital, type World } from '../cause.ts'
import { nodeStack } from '../stacks.ts'
import type { Values } from '../values.ts'

export function createNodeCauses(world: World): CauseDefinition[] {
  return [
    ...createStatusFamily(world),
    ...createSystemErrorFamily(world),
    ...createUndefinedFamily(world),
    ...createEndpointFamily(world),
    ...createSchemaFamily(world),
    createJsonCause(world),
    createFetchCause(world),
    createFileCause(world),
    createDuplicateKey(world),
  ]
}

function createStatusFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  return values.some([400, 401, 404, 409, 429, 500, 502, 503, 504], 4).map((status) => ({
    cause: `node.${name}-status~${status}`,
    queue: `${name}-dead`,
    errorClass: 'AxiosError',
    write: (each) => {
      const message = `Request failed with status code ${status}`
      return {
        message,
        stack: nodeStack(each, `AxiosError: ${message}`, [
          `${capital(name)}Client.send@${name}/client`,
          `handle@${name}/consumer`,
        ]),
      }
    },
  }))
}

function createSystemErrorFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  const errors: readonly (readonly [string, (each: Values) => string])[] = [
    ['ECONNREFUSED', (each) => `connect ECONNREFUSED ${each.ip()}:6379`],
    ['EHOSTUNREACH', (each) => `connect EHOSTUNREACH ${each.ip()}:6379`],
    ['ECONNRESET', () => 'read ECONNRESET'],
    ['EPIPE', () => 'write EPIPE'],
    ['ENOTFOUND', (each) => `getaddrinfo ENOTFOUND ${each.host(name)}`],
  ]
  return values.some(errors, 3).map(([code, write]) => ({
    cause: `node.${name}-system~${code}`,
    queue: `${name}-dead`,
    errorClass: 'Error',
    write: (each) => {
      const message = write(each)
      const properties = [' {', `  errno: -${each.number(1, 2) + 110},`, `  code: '${code}',`, '}']
      return {
        message,
        stack: each.chance(0.5) ? nodeStack(each, `Error: ${message}`, [], properties.slice(1, 1)) : '',
      }
    },
  }))
}

function createUndefinedFamily({ thing, verb, values }: World): CauseDefinition[] {
  const [name, action] = [thing(), verb()]
  return values.some(['amount', 'currency', 'owner', 'lines', 'country'], 2).map((property) => ({
    cause: `node.${name}-undefined~${property}`,
    queue: `${name}-dead`,
    errorClass: 'TypeError',
    write: (each) => {
      const message = `Cannot read properties of null (reading '${property}')`
      return {
        message,
        stack: nodeStack(each, `TypeError: ${message}`, [
          `${action}@${name}/${action}`,
          `onMessage@${name}/consumer`,
        ]),
      }
    },
  }))
}

/** No class and no stack: endpoints separate, ids do not. */
function createEndpointFamily({ thing, values }: World): CauseDefinition[] {
  const [first, second] = [`${thing()}s`, `${thing()}s`]
  const status = values.pick([500, 503, 504, 429])
  return [first, second].map((path) => ({
    cause: `node.endpoint~${path}`,
    queue: 'partner-dead',
    errorClass: '',
    write: (each) => ({
      message: `HTTP ${status} from https://gateway.partner.example/v2/${path}/${each.pick([each.uuid(), String(each.number(1, 1e6)), each.token(12)])}${each.chance(0.4) ? `?page=${each.number(1, 9)}&token=${each.hex(8)}` : ''}`,
    }),
  }))
}

function createSchemaFamily({ thing, values }: World): CauseDefinition[] {
  const name = thing()
  return values.some(['street', 'birthDate', 'iban', 'quantity'], 2).map((field) => ({
    cause: `node.${name}-schema~${field}`,
    queue: `${name}-dead`,
    errorClass: 'ValidationError',
    write: (each) => {
      const problems = Array.from(
        { length: each.number(1, 4) },
        () => `data/${name}s/${each.number(0, 30)}/${field} must be string`,
      )
      const message = each.pick([
        problems[0] as string,
        `data/${name}s/${each.number(0, 30)}/${field} must be string`,
      ])
      return {
        message,
        stack: nodeStack(each, `ValidationError: ${message}`, [
          `check@${name}/schema`,
          `onMessage@${name}/consumer`,
        ]),
      }
    },
  }))
}

function createJsonCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'node.json',
    queue: 'partner-dead',
    errorClass: 'SyntaxError',
    write: (each) => {
      const message = `Unexpected token '${each.pick(['<', 'u', 'N', '}', 'H'])}', "${each.pick(['<html>', 'undefined', 'None', '}{', 'Hello'])}..." is not valid JSON`
      return {
        message,
        stack: nodeStack(each, `SyntaxError: ${message}`, [
          `parse${capital(name)}@${name}/parse`,
          `onMessage@${name}/consumer`,
        ]),
      }
    },
  }
}

function createFetchCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'node.fetch-socket',
    queue: `${name}-dead`,
    errorClass: 'TypeError',
    write: (each) => ({
      message: 'fetch failed',
      stack: nodeStack(
        each,
        'TypeError: fetch failed',
        [`${capital(name)}Sender.push@${name}/sender`],
        [
          '  [cause]: SocketError: other side closed',
          `      at TLSSocket.onSocketEnd (node:internal/deps/undici/undici:${each.number(1000, 9000)}:26)`,
          "    code: 'UND_ERR_SOCKET',",
          `    socket: { localAddress: '${each.ip()}', localPort: ${each.number(1024, 65_000)} }`,
          '  }',
        ],
      ),
    }),
  }
}

/** File names without digits. */
function createFileCause({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'node.missing-file',
    queue: `${name}-dead`,
    errorClass: 'Error',
    write: (each) => {
      const message = `ENOENT: no such file or directory, open '${each.path()}'`
      return {
        message,
        stack: each.chance(0.7)
          ? nodeStack(each, `Error: ${message}`, [`read${capital(name)}@${name}/files`])
          : '',
      }
    },
  }
}

function createDuplicateKey({ thing }: World): CauseDefinition {
  const name = thing()
  return {
    cause: 'node.mongo-duplicate',
    queue: `${name}-dead`,
    errorClass: 'MongoServerError',
    write: (each) => {
      const message = `E11000 duplicate key error collection: main.${name}s index: reference_1 dup key: { reference: "${each.orderNumber()}" }`
      return {
        message,
        stack: nodeStack(each, `MongoServerError: ${message}`, [
          `${capital(name)}Repository.insert@${name}/repository`,
        ]),
      }
    },
  }
}
