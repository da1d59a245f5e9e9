import { KnownError } from '../../../errors.ts'

/** `field` is the path to the value: `body.items[3].priority`, `query.limit`, `path.name`. */
export type FieldFault = Readonly<{ field: string; message: string }>

/** A request that violates its schema, with all faults that were found. */
export class InvalidRequest extends KnownError {
  readonly faults: readonly FieldFault[]

  constructor(faults: readonly FieldFault[]) {
    super('BAD_REQUEST', faults.map((fault) => `${fault.field} ${fault.message}`).join('; '))
    this.name = 'InvalidRequest'
    this.faults = faults
  }
}
