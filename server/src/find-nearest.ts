/** Returns the candidate that the user most likely meant, or undefined if none is similar. */
export function findNearest(given: string, candidates: readonly string[]): string | undefined {
  const wanted = given.toLowerCase()
  const distanceMax = Math.max(1, Math.floor(wanted.length / 3))
  let best: string | undefined
  let bestDistance = distanceMax + 1
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  // `level` matches `log.level`, because people often remember only the last part.
  return best ?? candidates.find((candidate) => candidate.toLowerCase().endsWith(`.${wanted}`))
}

/**
 * Counts the edits from one text to the other: insert, delete or replace a character, or swap two neighbours.
 */
export function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      let steps = Math.min(
        readCell(previous, column) + 1,
        readCell(current, column - 1) + 1,
        readCell(previous, column - 1) + (isSame ? 0 : 1),
      )
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (row > 1 && column > 1 && isSwap) steps = Math.min(steps, readCell(beforePrevious, column - 2) + 1)
      current.push(steps)
    }
    beforePrevious = previous
    previous = current
  }
  return readCell(previous, to.length)
}

function readCell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY
}
