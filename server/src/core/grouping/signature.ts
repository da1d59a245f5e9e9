/**
 * The words that the miner compares: the message, the chain of causes and the frames, as lists of words. A
 * group stores it as a text of several lines, which `readSignature` reads back:
 *
 *     Could not open JPA EntityManager for transaction
 *     caused by: org.hibernate.exception.JDBCConnectionException
 *     caused by: java.sql.SQLTransientConnectionException
 *     root: HikariPool-<n> - Connection is not available, request timed out after <duration>
 *     root code: 08001
 *     root at: com.example.Store.load
 *     at: com.example.Listener.on
 */
import { cutText } from '../text/storable-text.ts'
import { isVariable, readTemplate, type Token, writeTemplate } from './template.ts'

export type Signature = Readonly<{
  message: readonly Token[]
  chain: readonly string[]
  root: readonly Token[]
  /** Codes of the root cause that the message does not have. */
  rootCodes: readonly string[]
  rootFrame: string
  frames: readonly string[]
  /** The stack has no frames of the application, or is cut. So causes and frames may be missing. */
  isCut: boolean
}>

const lineMax = 800
const textMax = 4_000

export function writeSignature(signature: Signature): string {
  const { chain, root, rootCodes, rootFrame, frames } = signature
  return [
    writeTemplate(signature.message),
    ...chain.map((errorClass) => `caused by: ${errorClass}`),
    ...(root.length > 0 ? [`root: ${writeTemplate(root)}`] : []),
    ...rootCodes.map((code) => `root code: ${code}`),
    ...(rootFrame === '' ? [] : [`root at: ${rootFrame}`]),
    ...frames.map((frame) => `at: ${frame}`),
    ...(signature.isCut ? ['cut'] : []),
  ]
    .map((line) => cutText(line.replaceAll('\n', ' '), lineMax))
    .join('\n')
    .slice(0, textMax)
    .toWellFormed()
}

export function readSignature(text: string): Signature {
  const [message = '', ...lines] = text.split('\n')
  const readValues = (name: string): string[] =>
    lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length))
  return {
    message: readTemplate(message),
    chain: readValues('caused by: '),
    root: readTemplate(readValues('root: ')[0] ?? ''),
    rootCodes: readValues('root code: '),
    rootFrame: readValues('root at: ')[0] ?? '',
    frames: readValues('at: '),
    isCut: lines.includes('cut'),
  }
}

/** A text that is equal for failures that differ only in masked values. */
export function toShape({ message, chain, root, rootCodes, rootFrame, frames }: Signature): string {
  const joinWords = (tokens: readonly Token[]) =>
    tokens.map(({ text, kind }) => (isVariable(kind) ? '<*>' : text)).join(' ')
  const lines = [
    joinWords(message),
    chain.join(' '),
    joinWords(root),
    rootCodes.toSorted().join(' '),
    rootFrame,
    ...frames,
  ]
  return lines.join('\n')
}
