/**
 * Files of JSON lines in a folder, each ended when it reaches its size. `append` resolves when the lines are
 * on disk, so the rows that they came from can then be removed.
 *
 * A file belongs to one process: a new process starts a new file. After a failed write the file is ended,
 * because it may end with a part of a line. After a crash, too, a file may end with a part of a line; the
 * message of that line is still in the store, and gets a line in a later file.
 */
import { constants } from 'node:fs'
import { access, type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, toDate } from '../../../core/time/instant.ts'

export interface MessageArchive {
  /** Appends the lines, and waits until they are on disk. */
  append(lines: readonly string[]): Promise<void>
  /** Rejects if no file can be written. */
  check(): Promise<void>
  close(): Promise<void>
}

export type ArchiveOptions = Readonly<{
  folder: string
  nodeName: string
  fileBytesMax: number
  clock: Clock
}>

type OpenFile = { readonly handle: FileHandle; bytes: number }

export function createMessageArchive(options: ArchiveOptions): MessageArchive {
  const { folder, fileBytesMax } = options
  let file: OpenFile | undefined
  const end = async (): Promise<void> => {
    const ended = file
    file = undefined
    await ended?.handle.close()
  }
  const append = async (lines: readonly string[]): Promise<void> => {
    for (const part of splitBySize(lines, fileBytesMax, file?.bytes ?? 0)) {
      if (file !== undefined && (part.isNewFile || file.bytes >= fileBytesMax)) await end()
      file ??= await create(options)
      await file.handle.appendFile(part.bytes)
      file.bytes += part.bytes.byteLength
      await file.handle.datasync()
    }
  }
  return {
    append: async (lines) => {
      try {
        await append(lines)
      } catch (error) {
        await end().catch(() => undefined)
        throw error
      }
    },
    check: async () => {
      await mkdir(folder, { recursive: true })
      await access(folder, constants.W_OK | constants.X_OK)
    },
    close: end,
  }
}

type Part = Readonly<{ bytes: Uint8Array; isNewFile: boolean }>

/** A line is never split, so a line that is larger than a file gets a file of its own. */
function splitBySize(lines: readonly string[], bytesMax: number, bytesBefore: number): Part[] {
  const parts: Part[] = []
  let [chunks, size, isNewFile] = [[] as Buffer[], bytesBefore, false]
  const flush = (): void => {
    if (chunks.length > 0) parts.push({ bytes: Buffer.concat(chunks), isNewFile })
    ;[chunks, size, isNewFile] = [[], 0, true]
  }
  for (const line of lines) {
    const bytes = Buffer.from(`${line}\n`)
    if (size > 0 && size + bytes.byteLength > bytesMax) flush()
    chunks.push(bytes)
    size += bytes.byteLength
  }
  flush()
  return parts
}

const namesMax = 1_000

/** The entry of the new file in its folder must be on disk, too. */
async function create({ folder, nodeName, clock }: ArchiveOptions): Promise<OpenFile> {
  await mkdir(folder, { recursive: true })
  const time = toDate(clock.now()).toISOString().replaceAll(/[-:]/g, '')
  for (let ordinal = 0; ; ordinal++) {
    const suffix = ordinal === 0 ? '' : `-${ordinal}`
    try {
      const handle = await open(join(folder, `${nodeName}_${time}${suffix}.jsonl`), 'ax')
      await syncFolder(folder)
      return { handle, bytes: 0 }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || ordinal === namesMax) throw error
    }
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
