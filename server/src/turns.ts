/**
 * Long work on the server's thread is done in short parts. All such work shares one queue: only one part runs
 * per turn of the event loop, regardless of the number of requests. So a health check waits for a few parts,
 * never for one part of each request in progress.
 */
const waiting: (() => void)[] = []
let isScheduled = false

/** Resolves when the next part may run: after the event loop has handled everything that has arrived. */
export function takeTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    schedule()
  })
}

function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    waiting.shift()?.()
    // An immediate that is set here runs in the next turn of the event loop.
    if (waiting.length > 0) schedule()
  })
}
