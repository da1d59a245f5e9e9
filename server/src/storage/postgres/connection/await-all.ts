/** All of them are waited for, even when one fails: a statement that is still on its way is part of the transaction. */
export async function awaitAll<T extends readonly unknown[] | []>(
  sent: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(sent)
  return Promise.all(sent)
}
