/** Where a value came from, so that every complaint and `redrive settings` can name the place. */
export type Origin =
  | Readonly<{ kind: 'default' }>
  | Readonly<{ kind: 'file'; path: string; line: number }>
  | Readonly<{ kind: 'environment'; variable: string }>
  | Readonly<{ kind: 'flag'; flag: string }>

/** A value somebody wrote, before anything checked it. `name` is as in redrive.yaml. */
export type Given = Readonly<{ name: string; text: string; origin: Origin }>

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
