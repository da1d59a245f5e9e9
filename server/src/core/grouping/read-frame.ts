/** Reads one line of a stack trace. */
import { isDotnetLibrary, isJavaLibrary, isPhpLibrary, isRustLibrary } from './libraries.ts'

/** `name`: the function without its variable parts; empty for frames of libraries and generated code. */
export type Frame = Readonly<{ name: string; isPython?: boolean }>

const libraryFrame: Frame = { name: '' }

/** Undefined: the line is no frame. */
export function readFrame(text: string): Frame | undefined {
  if (text.startsWith('at ')) return readAtFrame(text.slice('at '.length))
  if (text.startsWith('File "')) return readPythonFrame(text)
  if (text.startsWith('#')) return readPhpFrame(text)
  const first = text.charCodeAt(0)
  const startsWithDigit = first >= 48 && first <= 57
  if (startsWithDigit && /^[0-9]+: /.test(text)) return readRustFrame(text)
  return readRubyFrame(text)
}

function readAtFrame(text: string): Frame | undefined {
  // The message of Jackson: ` at [Source: …`.
  if (text.startsWith('[')) return undefined
  if (isNodeFrame(text)) return readNodeFrame(text)
  if (/\.rs:[0-9]+(?::[0-9]+)?$/.test(text)) return libraryFrame
  return readJavaFrame(text) ?? readDotnetFrame(text)
}

const javaSource =
  /^(?:[\w$.-]+\.(?:java|kt|kts|scala|groovy|clj)(?::-?[0-9]+)?|Native Method|Unknown Source|<generated>|SourceFile(?::[0-9]+)?)$/
const generatedJava =
  /\$\$(?:Lambda|EnhancerBy|FastClassBy|SpringCGLIB|_)|\$Proxy[0-9]+|Generated(?:Method|Constructor|SerializationConstructor)Accessor|LambdaForm\$|BoundMethodHandle|\$(?:ByteBuddy|HibernateProxy|MockitoMock)\$|_WeldClientProxy|_ClientProxy|_Subclass/

/** `module/package.Class.method(File.java:12)`, with a class loader or the jar file around it. */
function readJavaFrame(text: string): Frame | undefined {
  const open = text.indexOf('(')
  const close = text.indexOf(')', open)
  const source = text.slice(open + 1, close)
  if (open < 0 || close < 0 || !javaSource.test(source)) return undefined
  const called = text.slice(0, open)
  if (source === '<generated>' || generatedJava.test(called)) return libraryFrame
  const path = called.slice(called.lastIndexOf('/') + 1)
  const dot = path.lastIndexOf('.')
  const [type, method] = [path.slice(0, dot), path.slice(dot + 1)]
  if (isJavaLibrary(type) || method.startsWith('access$')) return libraryFrame
  // Classes without names and lambdas are numbered by the compiler: Order$1, lambda$price$2.
  const name = type.replaceAll(/\$[0-9]+/g, '')
  const functionName = /^lambda\$(.*)\$[0-9]+$/.exec(method)?.[1] ?? method
  return { name: `${name}.${functionName.replace(/\$[0-9]+$/, '')}` }
}

function isNodeFrame(text: string): boolean {
  return /:[0-9]+(?::[0-9]+)?\)?(?: \{)?$/.test(text)
    ? !/ in \S.*:line [0-9]+$/.test(text) &&
        !/\.(?:java|kt|kts|scala|groovy|clj|rs):[0-9]+\)?$/.test(text) &&
        !/\.rs:[0-9]+:[0-9]+$/.test(text)
    : /\((?:<anonymous>|native|index [0-9]+)\)$/.test(text)
}

const nodeLibrary =
  /node_modules|^(?:file:\/\/\/)?node:|^internal\/|^(?:native|<anonymous>|index [0-9]+)$|^(?:_?stream|net|events|timers|module|domain|vm|fs|http|https|tls|dns|util|bootstrap_node|evalmachine)[\w./<>]*\.js|^webpack\/|\(webpack\)|^ext:|^bun:|^\[eval\]/

function readNodeFrame(text: string): Frame {
  const trimmed = text.endsWith(' {') ? text.slice(0, -2) : text
  const open = trimmed.endsWith(')') ? trimmed.lastIndexOf('(') : -1
  const called = open < 0 ? '' : trimmed.slice(0, open).trimEnd()
  const place = open < 0 ? trimmed.replace(/^async /, '') : trimmed.slice(open + 1, -1)
  const [, file = '', line = '', column = ''] = /^(.*?)(?::([0-9]+))?(?::([0-9]+))?$/.exec(place) ?? []
  if (nodeLibrary.test(file)) return libraryFrame
  // A bundle is minified: its names change with every build.
  if (Number(line) <= 20 && Number(column) >= 500) return libraryFrame
  const name = called
    .replace(/^(?:async |new )+/, '')
    .replace(/ \[as .*\]$/, '')
    .replace(/^(?:Object|Module|Function|exports|_this|Timeout|Immediate|process)\./, '')
  if (name !== '' && /^(?:[\w$]{1,2}\.)*[\w$]{1,2}$/.test(name)) return libraryFrame
  const stem = readStem(file)
  if (name === '' || name === '<anonymous>' || name === 'anonymous') return { name: stem }
  return { name: name.includes('.') || stem === '' ? name : `${stem}.${name}` }
}

/** The name of a file without folders, endings and the hash of a build. */
function readStem(file: string): string {
  const name = file.replace(/[?#].*$/, '').replace(/^.*[\\/]/, '')
  return name
    .replace(/\.(?:[cm]?[jt]sx?|py|rb|php|vue|svelte)$/, '')
    .replace(/[.-](?=[\w-]*[0-9])[A-Za-z0-9_]{6,}$/, '')
    .replace(/^chunk$/, '')
}

function readPythonFrame(text: string): Frame | undefined {
  const found = /^File "([^"]+)", line [0-9]+(?:, in (.+))?$/.exec(text)
  if (found === null) return undefined
  const file = found[1] as string
  if (/(?:site|dist)-packages|\/lib(?:64)?\/python[0-9.]*\/|^<frozen|^<string>|\\lib\\/i.test(file))
    return { name: '', isPython: true }
  const called = (found[2] ?? '').replace(/^.*\./, '')
  return { name: called === '<module>' ? readStem(file) : `${readStem(file)}.${called}`, isPython: true }
}

function readRubyFrame(text: string): Frame | undefined {
  const found =
    /^(?:from )?(\S.*?\.(?:rb|erb|rake|ru|haml|slim)|<internal:[\w/-]+>|\(eval\S*\)):[0-9]+:in [`'](.+)'$/.exec(
      text,
    )
  if (found === null) return undefined
  const file = found[1] as string
  if (/\/gems\/|\/(?:lib|bundle)\/ruby\/|^<internal:|^\(eval|\/vendor\/bundle\//.test(file))
    return libraryFrame
  // Ruby 3.4 writes the class in front of the method, and a block is part of its method.
  const called = (found[2] as string).replace(/^(?:.* in )/, '').replace(/^.*[#.]/, '')
  return { name: `${readStem(file)}.${called}` }
}

function readPhpFrame(text: string): Frame | undefined {
  const found = /^#[0-9]+ (?:(.+?)\(([0-9]+)\)|\[internal function\]|\{main\})(?:: (.+))?$/.exec(text)
  if (found === null) return /^#[0-9]+ \{main\}/.test(text) ? libraryFrame : undefined
  const called = (found[3] ?? '').replace(/\(.*$/, '').replaceAll(/@anonymous.*?(?=->|::|$)/g, '@anonymous')
  if (called === '' || isPhpLibrary(called)) return libraryFrame
  return { name: called.replace(/(?:->|::).*\{closure.*$/, '.{closure}') }
}

function readRustFrame(text: string): Frame {
  const called = text
    .replace(/^[0-9]+: +/, '')
    .replace(/^0x[0-9a-f]+ - /, '')
    .replace(/::h[0-9a-f]{16}$/, '')
    .replaceAll('::{{closure}}', '')
    .replaceAll('{{closure}}', '')
  const name = called.replace(/^<([\w:]+)[^>]* as [^>]+>/, '$1').replaceAll(/<[^<>]*>/g, '')
  return isRustLibrary(name) ? libraryFrame : { name }
}

function readDotnetFrame(text: string): Frame | undefined {
  const found = /^([\w.`+<>$|[\],@-]+)\s?\(([^)]*)\)(?: in .*)?$/.exec(text)
  if (found === null) return undefined
  const called = found[1] as string
  if (!called.includes('.') || isDotnetLibrary(called)) return libraryFrame
  // The compiler moves bodies of async methods, iterators and lambdas: <Pay>d__12.MoveNext, <>c.<Pay>b__0.
  const name = called
    .replace(/\.MoveNext$/, '')
    .replaceAll(/[.+]<>c(?:__DisplayClass[0-9_]+)?/g, '')
    .replaceAll(/<([\w.]+)>[dbg]__[\w|]*/g, '$1')
    .replaceAll(/`[0-9]+|\[[^\]]*\]/g, '')
    .replaceAll('+', '.')
  return { name }
}
