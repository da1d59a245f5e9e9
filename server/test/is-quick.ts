/** `npm run test:quick` is running. It skips tests that write thousands of letters to reach a limit. */
export const isQuick = process.env.REDRIVE_TEST_QUICK === 'true'
