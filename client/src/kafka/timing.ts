export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Ends early if the signal aborts. */
export function pauseUnless(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, signal.aborted ? 0 : ms)
    signal.addEventListener('abort', end)
  })
}

/** False: it takes longer. */
export async function resolvesWithin(done: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  const isDone = await Promise.race([done.then(() => true), late])
  clearTimeout(timer)
  return isDone
}

export type Deferred<T> = Readonly<{
  promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}>

/** Like Promise.withResolvers, which Node 20 does not have. */
export function createDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

/** Like Map.groupBy, which Node 20 does not have. */
export function groupByTopic<T>(
  values: readonly T[],
  topicOf: (value: T) => string,
): ReadonlyMap<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const value of values) {
    const topic = topicOf(value)
    const group = groups.get(topic)
    if (group === undefined) groups.set(topic, [value])
    else group.push(value)
  }
  return groups
}
