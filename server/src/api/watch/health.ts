import { Type } from 'typebox'
import { route } from '../route.ts'
import { v1 } from '../v1/dialect.ts'

const Status = Type.Enum(['pass', 'fail'])
export const HealthBody = Type.Object({
  status: Status,
  version: Type.String(),
  checks: Type.Record(
    Type.String(),
    Type.Array(
      Type.Object({
        componentType: Type.String(),
        status: Status,
        time: Type.String({ format: 'date-time' }),
        output: Type.Optional(Type.String({ description: 'Why it fails.' })),
      }),
    ),
  ),
})

const mediaType = 'application/health+json'
const healthAnswer = (description: string) => ({
  description,
  content: { [mediaType]: { schema: HealthBody } },
})

export const healthRoutes = [
  route({
    method: 'GET',
    path: '/health',
    permission: 'public',
    summary: 'Whether the server can do its work, and if not, why.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: { 200: healthAnswer('All is well.'), 503: healthAnswer('Something the server needs fails.') },
    },
    handler: (_request, reply, { health }) => {
      const now = health()
      return reply
        .code(now.status === 'pass' ? 200 : 503)
        .header('Cache-Control', 'no-store')
        .type(mediaType)
        .send(JSON.stringify(now))
    },
  }),
]
