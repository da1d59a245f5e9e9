/** The repair of groups. */
export const causesAfterMerge = ''
