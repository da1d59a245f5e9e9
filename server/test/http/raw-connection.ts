import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach } from 'vitest'

/** A connection on which a test writes HTTP as text, for requests that an HTTP client would never send. */
export interface RawConnection {
  readonly socket: Socket
  write(text: string): void
  /** Waits until the server closes the connection, and returns all text received. */
  readToEnd(): Promise<string>
  /** Waits for `end`, and returns the text received up to and including it. */
  readTo(end: string): Promise<string>
}

const open: Socket[] = []

export async function connectRaw(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1')
  open.push(socket)
  let received = ''
  let isClosed = false
  socket.setEncoding('utf8')
  socket.on('data', (text) => {
    received += text
  })
  // A reset also closes the connection. The tests look at the text that arrived before it.
  socket.on('error', () => {})
  socket.on('close', () => {
    isClosed = true
  })
  await once(socket, 'connect')
  return {
    socket,
    write: (text) => void socket.write(text),
    readToEnd: async () => {
      if (!isClosed) await once(socket, 'close')
      return received
    },
    readTo: async (end) => {
      while (!received.includes(end)) {
        if (isClosed)
          throw new Error(
            `the connection closed before ${JSON.stringify(end)} arrived: ${JSON.stringify(received)}`,
          )
        await Promise.race([once(socket, 'data'), once(socket, 'close')])
      }
      const cut = received.indexOf(end) + end.length
      const text = received.slice(0, cut)
      received = received.slice(cut)
      return text
    },
  }
}

afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy()
})
