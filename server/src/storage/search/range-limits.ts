/** Limits for finding ranges, equal in both stores. */

/**
 * A filter that matches more counts (group, state and number of redrives) than this is answered by the larger
 * ranges of its queues and states, whose other letters are skipped one by one.
 */
export const rangesMax = 1_000
/** Letters that are found by an index of another order are sorted, if they are at most this many. */
export const sortedMax = 20_000
/**
 * A step that compares payloads ends after reading this many bytes of them. PostgreSQL returns the rows of a
 * step at once.
 */
export const comparedBytesMax = 8 * 2 ** 20
