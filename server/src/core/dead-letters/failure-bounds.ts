/**
 * The longest code and class of a failure. Letters are grouped, counted and filtered by both, so every place
 * that creates a failure cuts them to the same length: a filter with the shown value finds the letter.
 */
export const failureReasonMax = 100
export const errorClassMax = 500
/** The longest name of a cause that a worker gives. */
export const fingerprintMax = 200
