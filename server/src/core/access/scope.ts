/**
 * The namespaces in which a caller may act. For everything else the caller gets the answer for a thing that
 * does not exist. Null: all namespaces, also future ones.
 */
export type Scope = readonly string[] | null

export function isInScope(scope: Scope, namespace: string): boolean {
  return scope === null || scope.includes(namespace)
}

/** The wanted namespaces that are in the scope; undefined: all of the scope. */
export function intersectScope(
  scope: readonly string[],
  wanted: readonly string[] | undefined,
): readonly string[] {
  return wanted === undefined ? scope : wanted.filter((namespace) => scope.includes(namespace))
}
