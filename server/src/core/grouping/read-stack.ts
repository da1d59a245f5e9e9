/**
 * Reads a stack trace of Java, Node, Python, Go, .NET, Ruby, PHP or Rust: the chain of its causes, and the
 * functions of the application in which it was thrown. Line numbers, addresses, hashes, generated classes,
 * release folders and the frames of libraries change without a change of the cause, so they are left out.
 */
import { readFrame } from './read-frame.ts'

export type Stack = Readonly<{
  /** The classes of the causes below the failure itself, the root cause last. */
  chain: readonly string[]
  /** The message of the root cause. Empty if there is none. */
  rootMessage: string
  /** The function of the application that threw the root cause. Empty if it is unknown. */
  rootFrame: string
  /** The functions of the application, the thrower first. At most `framesKept`. */
  frames: readonly string[]
  /** Codes that properties of the error give: `code: 'ETIMEDOUT'`. */
  codes: readonly string[]
  /** The text ends within the stack, so its root cause may be missing. */
  isCut: boolean
}>

export const stackRead = 32_000
const framesKept = 3
const chainMax = 6
const linesMax = 600
const lineMax = 600

/** A stretch of a stack: one error and the frames below it. */
type Section = { header: string; frames: string[]; isPython: boolean }

const noStack: Stack = { chain: [], rootMessage: '', rootFrame: '', frames: [], codes: [], isCut: false }

export function readStack(text: string): Stack {
  if (text === '') return noStack
  const reader = new StackReader()
  let start = 0
  for (let line = 0; line < linesMax && start < text.length; line++) {
    const found = text.indexOf('\n', start)
    const end = found < 0 ? text.length : found
    reader.read(text.slice(start, Math.min(end, start + lineMax)))
    start = end + 1
  }
  return reader.finish(start < text.length || isCutLength(text.length) || /\n[\t ]+$/.test(text))
}

/** Programs cut texts at round lengths. */
function isCutLength(length: number): boolean {
  return length >= 250 && (length % 250 === 0 || length % 256 === 0 || length % 256 === 255)
}

const nested = /^(?:Caused by: |\[cause\]: |---> ?|\(Inner Exception #[0-9]+\) )(.*)$/
const pythonChain = /^(?:The above exception was the direct cause|During handling of the above exception)/
const phpNext = /^Next [\w\\]+(?:: |$)/
const ignored =
  /^(?:\.\.\. [0-9]+ |Suppressed: |--- End of stack trace|\[errors\]: |goroutine [0-9]+ |created by |\[signal |Traceback \(|stack backtrace:|thread '|note: |[\]})]+,?$|[~^]+$)/
const property = /^(?:code|errno|status|statusCode|sqlState|type): (?:'([\w.-]{1,64})'|([0-9]{1,6})),?$/
const goFile = /^(?:\/|[A-Za-z]:|\w)\S*\.go:[0-9]+/

class StackReader {
  readonly #sections: Section[] = [createSection('')]
  /** The inner errors of .NET, whose frames come before those of the outer one. */
  readonly #ended: Section[] = []
  readonly #codes: string[] = []
  /** The root comes first, as in Python and PHP. */
  #isRootFirst = false
  /** Causes are listed below a line of their own, the root last. */
  #isList = false
  /** In Go the line before the file has the function. */
  #before = ''
  #isLastComplete = true

  get #section(): Section {
    return this.#sections.at(-1) as Section
  }

  read(line: string): void {
    const text = line.trim()
    if (text === '') return
    const section = this.#section
    // Enough frames are known: look for the next cause only.
    const isKnown = section.frames.length >= framesKept && !section.isPython && text.startsWith('at ')
    this.#isLastComplete = (isKnown && text.endsWith(')')) || this.#readLine(line, text)
    this.#before = text
  }

  /** Whether the line is complete and belongs to a stack. */
  #readLine(line: string, text: string): boolean {
    if (this.#readChain(text) || this.#readProperty(text)) return true
    if (/^\s/.test(line) && goFile.test(text)) return this.#readGo(text)
    const isListed = this.#isList && !text.includes('::')
    const frame = isListed ? undefined : readFrame(text)
    if (frame === undefined) return this.#readHeader(line, text)
    const section = this.#section
    this.#isList = false
    if (frame.isPython === true) section.isPython = true
    if (frame.name !== '' && section.frames.at(-1) !== frame.name) section.frames.push(frame.name)
    return true
  }

  /** Whether the line starts the section of another error, or ends one. */
  #readChain(text: string): boolean {
    const cause = nested.exec(text)?.[1]
    if (cause !== undefined) this.#sections.push(createSection(cause))
    else if (text === 'Caused by:') {
      this.#sections.push(createSection(''))
      this.#isList = true
    } else if (pythonChain.test(text)) {
      this.#isRootFirst = true
      this.#sections.push(createSection(''))
    } else if (phpNext.test(text) && this.#section.frames.length > 0) {
      this.#isRootFirst = true
      this.#sections.push(createSection(text.slice('Next '.length)))
    } else if (text.startsWith('--- End of inner exception')) {
      if (this.#sections.length > 1) this.#ended.push(this.#sections.pop() as Section)
    } else return ignored.test(text)
    return true
  }

  #readHeader(line: string, text: string): boolean {
    const section = this.#section
    if (this.#isList) {
      section.header = text.replace(/^[0-9]+: /, '')
      return true
    }
    if (section.isPython) {
      // Python names the error behind its frames, and shows the source, indented, between them.
      const isError = !/^\s/.test(line) && errorHeader.test(text)
      if (isError) section.header = text
      return isError || /^\s/.test(line)
    }
    if (section.header === '' && section.frames.length === 0) section.header = text
    return section.frames.length === 0
  }

  #readProperty(text: string): boolean {
    const found = property.exec(text)
    const code = found?.[1] ?? found?.[2]
    if (code === undefined || this.#codes.length >= 4) return false
    if (!this.#codes.includes(code)) this.#codes.push(code)
    return true
  }

  #readGo(file: string): boolean {
    if (this.#before.startsWith('created by ')) return true
    const section = this.#section
    // Frames above the panic belong to the code that recovered from it.
    if (this.#before.startsWith('panic(')) section.frames.length = 0
    const name = readGoFunction(this.#before, file)
    if (name !== '' && section.frames.at(-1) !== name) section.frames.push(name)
    return true
  }

  finish(isTextCut: boolean): Stack {
    const inner = this.#ended.length > 0
    const sections = inner ? [...this.#sections, ...this.#ended.toReversed()] : this.#sections
    // Without its last line, a stack of Python does not show the thrower.
    for (const section of sections) {
      if (section.isPython && section.header === '') section.frames.length = 0
    }
    const ordered = this.#isRootFirst ? sections.toReversed() : sections
    const root = ordered.length > 1 ? ordered.at(-1) : undefined
    const causes = ordered.slice(1).map(({ header }) => splitHeader(header))
    const withFrames = sections.find(({ frames }) => frames.length > 0)
    return {
      chain: causes.slice(-chainMax).map(({ errorClass }) => errorClass),
      rootMessage: causes.at(-1)?.message ?? '',
      rootFrame: root === undefined ? '' : (orderFrames(root)[0] ?? ''),
      frames: withFrames === undefined ? [] : orderFrames(withFrames).slice(0, framesKept),
      codes: this.#codes,
      isCut: isTextCut || !this.#isLastComplete,
    }
  }
}

function createSection(header: string): Section {
  return { header: header.replace(/\s*\{$/, ''), frames: [], isPython: false }
}

function orderFrames({ frames, isPython }: Section): readonly string[] {
  return isPython ? frames.toReversed() : frames
}

/** `com.example.NotFound: order 17 is gone`. */
const errorHeader =
  /^([A-Za-z_$][\w$]*(?:(?:\.|::|\\|\/)[A-Za-z_$][\w$]*)*)(?: [[(][\w.-]+[\])])?(?:: (.*))?$/s

function splitHeader(header: string): Readonly<{ errorClass: string; message: string }> {
  const found = errorHeader.exec(header)
  if (found === null) return { errorClass: '', message: header }
  return { errorClass: found[1] as string, message: found[2] ?? '' }
}

const goLibrary =
  /\/pkg\/mod\/|\/vendor\/|^(?:\/usr(?:\/local)?\/(?:lib\/)?go(?:-[\d.]+)?|\/opt\/(?:hostedtoolcache\/)?go)\/|\/go\/src\/(?:runtime|net|internal)\/|^\w[\w/]*\.go:|@v[0-9]/

function readGoFunction(call: string, file: string): string {
  // The arguments are the last pair of parentheses; a receiver such as (*Planner) comes before them.
  const open = call.endsWith(')') ? call.lastIndexOf('(') : -1
  const name = open > 0 ? call.slice(0, open) : call
  if (goLibrary.test(file) || /^(?:runtime|testing|reflect|sync|syscall|panic$)[./]?/.test(name)) return ''
  return name
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\.(?:func|gowrap)[0-9]+(?:\.[0-9]+)*/g, '')
    .replace(/^.*\//, '')
}
