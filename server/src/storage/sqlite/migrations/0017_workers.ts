/** The registry of workers. */
export const workers = ''
