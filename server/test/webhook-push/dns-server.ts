/** A DNS server for tests: answers A and AAAA questions from a function, with a time to live of 0. */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { isIPv4 } from 'node:net'

export type DnsServer = Readonly<{ address: string; close(): Promise<void> }>

/** The addresses of a name; undefined: the name does not exist; `'silence'`: no answer. */
export type DnsAnswer = (name: string) => readonly string[] | undefined | 'silence'

export async function startDnsServer(answer: DnsAnswer): Promise<DnsServer> {
  const socket = createSocket('udp4')
  socket.on('message', (question: Buffer, sender: RemoteInfo) => {
    const reply = createReply(question, answer)
    if (reply !== undefined) socket.send(reply, sender.port, sender.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

const headerBytes = 12
const typeA = 1
const typeAaaa = 28

function createReply(message: Buffer, answer: DnsAnswer): Buffer | undefined {
  const labels: string[] = []
  let at = headerBytes
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  const type = message.readUInt16BE(at + 1)
  const question = message.subarray(headerBytes, at + 5)
  const found = answer(labels.join('.').toLowerCase())
  if (found === 'silence') return undefined
  const records = (found ?? [])
    .filter((address) => (isIPv4(address) ? typeA : typeAaaa) === type)
    .map((address) => createRecord(address, type))
  const header = Buffer.alloc(headerBytes)
  message.copy(header, 0, 0, 2)
  header.writeUInt16BE(found === undefined ? 0x8183 : 0x8180, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

function createRecord(address: string, type: number): Buffer {
  const data = type === typeA ? Buffer.from(address.split('.').map(Number)) : encodeIpv6(address)
  const head = Buffer.alloc(12)
  // The name is that of the question.
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

/** Only addresses that are written with all their groups, or `::1`. */
function encodeIpv6(address: string): Buffer {
  const groups =
    address === '::1'
      ? [0, 0, 0, 0, 0, 0, 0, 1]
      : address.split(':').map((group) => Number.parseInt(group, 16))
  const bytes = Buffer.alloc(16)
  for (const [index, group] of groups.entries()) bytes.writeUInt16BE(group, index * 2)
  return bytes
}
