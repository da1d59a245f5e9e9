/** Logs a sentence. A parameter, so that this folder does not depend on the logger. */
export type Notify = (level: 'info' | 'warn', sentence: string) => void
