/**
 * The object with some of its members replaced. Unlike a copy it also works for instances of classes, whose
 * methods a copy would lose.
 */
export function overlay<T extends object>(base: T, members: Partial<T>): T {
  return new Proxy(base, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return members[name as keyof T]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
