/** Something that the benchmark needs is not here. The sentence is for a person: no stack is shown. */
export class CannotRun extends Error {}
