/** Tells the log something in a sentence, without this folder having to know the log. */
export type Notify = (level: 'info' | 'warn', sentence: string) => void
