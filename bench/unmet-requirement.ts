/** The benchmark cannot run on this machine. Only the message is shown, without a stack. */
export class UnmetRequirement extends Error {}
