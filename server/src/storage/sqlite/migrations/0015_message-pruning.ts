/** The summary of dead jobs and the pruning of messages. */
export const messagePruning = ''
