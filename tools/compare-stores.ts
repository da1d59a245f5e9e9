/** Compares the file names of the two stores. Pure, so that a test can call it. */
export type StoreDifference = Readonly<{ file: string; store: 'sqlite' | 'postgres'; reason: string }>

export type StoreFiles = Readonly<{ sqlite: readonly string[]; postgres: readonly string[] }>

/** Returns one sentence for each file without a counterpart or a reason, and for each outdated reason. */
export function compareStores(files: StoreFiles, differences: readonly StoreDifference[]): string[] {
  const listed = (store: string, file: string): boolean =>
    differences.some((difference) => difference.store === store && difference.file === file)
  const missing = (['sqlite', 'postgres'] as const).flatMap((store) => {
    const other = store === 'sqlite' ? 'postgres' : 'sqlite'
    return files[store]
      .filter((file) => !files[other].includes(file) && !listed(store, file))
      .map((file) => `${store}/${file} has no counterpart in ${other}: mirror it, or list it with a reason`)
  })
  return [...missing, ...differences.flatMap((difference) => checkDifference(files, difference))]
}

function checkDifference(files: StoreFiles, { file, store }: StoreDifference): string[] {
  const other = store === 'sqlite' ? 'postgres' : 'sqlite'
  if (!files[store].includes(file)) return [`${store}/${file} is listed as a difference and does not exist`]
  if (files[other].includes(file)) return [`${store}/${file} is listed as a difference and exists in both`]
  return []
}
