/** Names of fields, columns and models in the forms in which validators write them. */
import { type CauseDefinition, capital, type World } from '../cause.ts'
import type { Values } from '../values.ts'

type Format = Readonly<{ errorClass: string; write(each: Values, field: string, thing: string): string }>

const fields = [
  'email',
  'street',
  'quantity',
  'birthDate',
  'vat_number',
  'country',
  'iban',
  'phone',
  'unit_price',
]

const formats: readonly Format[] = [
  // Joi, AJV, class-validator, JSON Schema, Yup
  { errorClass: 'ValidationError', write: (_each, field, thing) => `"${thing}.${field}" is required` },
  {
    errorClass: 'ValidationError',
    write: (each, field) => `"items[${each.number(0, 40)}].${field}" must be a string`,
  },
  {
    errorClass: 'ValidationError',
    write: (each, field) => `/items/${each.number(0, 40)}/${field} must be string`,
  },
  {
    errorClass: 'BadRequestException',
    write: (each, field) => `items.${each.number(0, 40)}.${field} must be a number`,
  },
  {
    errorClass: 'jsonschema.exceptions.ValidationError',
    write: (_each, field) => `'${field}' is a required property`,
  },
  { errorClass: 'ValidationError', write: (_each, field) => `${field} is a required field` },
  // Bean Validation, Spring, FluentValidation, Laravel, Rails, Go
  {
    errorClass: 'ConstraintViolationException',
    write: (each, field) => `create.arg0.lines[${each.number(0, 40)}].${field}: must not be null`,
  },
  {
    errorClass: 'BindException',
    write: (each, field, thing) =>
      `Field error in object '${thing}' on field '${field}': rejected value [${each.person()}]`,
  },
  { errorClass: 'ValidationException', write: (_each, field) => `'${capital(field)}' must not be empty.` },
  { errorClass: 'ValidationException', write: (_each, field) => `The ${field} field is required.` },
  {
    errorClass: 'ActiveRecord::RecordInvalid',
    write: (_each, field) => `Validation failed: ${capital(field)} can't be blank`,
  },
  {
    errorClass: 'validator.ValidationErrors',
    write: (_each, field, thing) =>
      `Key: '${capital(thing)}.${capital(field)}' Error:Field validation for '${capital(field)}' failed on the 'required' tag`,
  },
  { errorClass: 'MissingKey', write: (each, field) => `missing key ${field} in message ${each.uuid()}` },
  { errorClass: 'MissingField', write: (each, field) => `message ${each.uuid()} has no field ${field}` },
  {
    errorClass: 'serde_json::Error',
    write: (each, field) =>
      `missing field \`${field}\` at line ${each.number(1, 90)} column ${each.number(1, 900)}`,
  },
  {
    errorClass: 'avro.AvroTypeException',
    write: (each, field) =>
      `The datum "${each.person()}" provided for "${field}" is not an example of the schema "int"`,
  },
]

/** Models, which separate causes as fields do. */
const modelFormats: readonly Format[] = [
  {
    errorClass: 'ObjectDoesNotExist',
    write: (_each, model) => `${capital(model)} matching query does not exist.`,
  },
  {
    errorClass: 'ModelNotFoundException',
    write: (each, model) =>
      `No query results for model [App\\Models\\${capital(model)}] ${each.number(1, 9999)}`,
  },
  {
    errorClass: 'EntityNotFoundException',
    write: (each, model) => `Unable to find com.shop.model.${capital(model)} with id ${each.number(1, 9999)}`,
  },
  {
    errorClass: 'ObjectNotFoundException',
    write: (each, model) =>
      `No row with the given identifier exists: [com.shop.model.${capital(model)}#${each.number(1, 9999)}]`,
  },
  {
    errorClass: 'QueryFailedError',
    write: (each, model) => `relation "${model}s" does not exist for request ${each.uuid()}`,
  },
  {
    errorClass: 'OptimisticLockException',
    write: (each, model) =>
      `Row was updated or deleted by another transaction : [com.shop.model.${capital(model)}#${each.uuid()}]`,
  },
]

export function createFieldCauses({ values, thing }: World): CauseDefinition[] {
  const name = thing()
  const models = [thing(), thing()]
  const toCauses = (format: Format, names: readonly string[], family: string): CauseDefinition[] =>
    names.map((field) => ({
      cause: `${family}~${field}`,
      queue: `${family}-dead`,
      errorClass: format.errorClass,
      write: (each: Values) => ({ message: format.write(each, field, name) }),
    }))
  return [
    ...formats.flatMap((format, index) => toCauses(format, values.some(fields, 2), `field-${index}`)),
    ...modelFormats.flatMap((format, index) => toCauses(format, models, `model-${index}`)),
  ]
}
