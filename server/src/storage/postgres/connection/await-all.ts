/**
 * Waits for all promises, even if one rejects: no statement may follow the rollback of its transaction. Then
 * rejects with the first error.
 */
export async function awaitAll<T extends readonly unknown[] | []>(
  promises: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}
