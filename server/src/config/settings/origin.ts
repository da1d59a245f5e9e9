/** The source of a value, which error messages and `redrive settings` show. */
export type Origin =
  | Readonly<{ kind: 'default' }>
  | Readonly<{ kind: 'file'; path: string; line: number }>
  | Readonly<{ kind: 'environment'; variable: string }>
  | Readonly<{ kind: 'flag'; flag: string }>

/** A value before it is checked. `name` has the form of redrive.yaml. */
export type RawSetting = Readonly<{ name: string; text: string; origin: Origin }>

export function describeOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'default':
      return 'default'
    case 'file':
      return `${origin.path} line ${origin.line}`
    case 'environment':
      return origin.variable
    case 'flag':
      return origin.flag
  }
}
