/** Alert rules, channels and their history. */
export const alerts = ''
