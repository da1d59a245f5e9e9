export type StopSignal = 'SIGINT' | 'SIGTERM'

/** The convention of shells: 128 plus the number of the signal. */
export const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const satisfies Record<StopSignal, number>

export type StopSignals = Readonly<{
  /** Resolves with the first signal. */
  first: Promise<StopSignal>
  release(): void
}>

type Emitter = Pick<NodeJS.Process, 'on' | 'off'>

/**
 * Listens for stop signals. The second signal means that the user does not want to wait for an orderly stop.
 */
export function listenForStop(process: Emitter, onSecond: (exitCode: number) => void): StopSignals {
  let isStopping = false
  let resolveFirst: (signal: StopSignal) => void = () => {}
  const first = new Promise<StopSignal>((resolve) => {
    resolveFirst = resolve
  })
  const listen = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT' && signal !== 'SIGTERM') return
    if (isStopping) onSecond(signalExitCodes[signal])
    isStopping = true
    resolveFirst(signal)
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, listen)
  return {
    first,
    release: () => {
      for (const signal of signals) process.off(signal, listen)
    },
  }
}
