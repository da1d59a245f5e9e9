import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { type TSchema, Type } from 'typebox'
import { component } from '../../http/openapi/annotations.ts'

/**
 * Describes the JSON form of a message for OpenAPI. Bodies are validated by the descriptor, not by this
 * schema.
 */
export function toJsonSchema(desc: DescMessage): TSchema {
  if (desc.typeName === 'google.protobuf.Timestamp') return Type.String({ format: 'date-time' })
  const properties = Object.fromEntries(
    desc.fields.map((field) => [field.name, Type.Optional(toFieldSchema(field))]),
  )
  return component(desc.name, Type.Object(properties))
}

function toFieldSchema(field: DescField): TSchema {
  switch (field.fieldKind) {
    case 'message':
      return toJsonSchema(field.message)
    case 'list':
      return Type.Array(
        field.listKind === 'message' ? toJsonSchema(field.message) : toScalarSchema(ScalarType.STRING),
      )
    case 'map':
      return Type.Record(Type.String(), Type.String())
    case 'scalar':
      return toScalarSchema(field.scalar)
    default:
      return Type.Unknown()
  }
}

function toScalarSchema(scalar: ScalarType): TSchema {
  switch (scalar) {
    case ScalarType.INT32:
      return Type.Integer()
    case ScalarType.BOOL:
      return Type.Boolean()
    case ScalarType.BYTES:
      return Type.String({ contentEncoding: 'base64' })
    default:
      return Type.String()
  }
}
