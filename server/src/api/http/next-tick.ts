let tick: Promise<void> | undefined

/**
 * Resolves when every request that has arrived by now is read, for all of them at once.
 *
 * Node finishes all that a request set going before it looks at the next one, though both have arrived.
 * So the first of many would go to the store by itself and the others would wait for it. With this they
 * go together, in the order in which they came, and alone nobody waits.
 */
export function waitForNextTick(): Promise<void> {
  tick ??= new Promise((resolve) => {
    setImmediate(() => {
      tick = undefined
      resolve()
    })
  })
  return tick
}
