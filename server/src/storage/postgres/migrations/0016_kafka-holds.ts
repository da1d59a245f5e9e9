/** Records that wait behind a dead record with the same key. */
export const kafkaHolds = ''
