/** URLs without their variable parts. The host and the path template of an HTTP URL name the endpoint. */

import { isRandomWord } from './variable-words.ts'

/** `text` starts with a scheme and `://`. */
export function maskUrl(text: string): string {
  const [, scheme = '', authority = '', rest = ''] = /^([^:]*):\/\/([^/?#]*)(.*)$/s.exec(text) ?? []
  const host = maskAuthority(authority.slice(authority.lastIndexOf('@') + 1))
  if (/^(?:https?|wss?|grpcs?)$/i.test(scheme)) return `${scheme}://${host}${maskUrlPath(rest)}`
  // In other schemes the path names data: s3://bucket/key, file:///tmp/x, hdfs://…
  return `${scheme}://${host}${rest === '' || rest === '/' ? rest : '/<path>'}`
}

/** Without query and fragment: they are often left out, and carry values. */
export function maskUrlPath(text: string): string {
  const path = text.replace(/[?#].*$/s, '')
  return path
    .split('/')
    .map((part) => (isVariablePart(part) ? '<id>' : part))
    .join('/')
    .replaceAll(/(?:<id>\/)+<id>/g, '<id>')
}

function isVariablePart(part: string): boolean {
  if (part === '' || /^v[0-9]{1,2}(?:\.[0-9]+)?$/.test(part)) return false
  if (/[0-9@%]/.test(part)) return !/^[a-z]{2,}[0-9]$|^oauth2$/.test(part)
  return part.split(/[-_]/).length > 3 || part.length > 40 || isRandomWord(part)
}

function maskAuthority(authority: string): string {
  const host = authority.replace(/:[0-9]*$/, '')
  if (/^[0-9.]+$|^\[/.test(host)) return '<host>'
  const labels = host.split('.')
  const isMachine = labels.length > 1 && isNumbered(labels[0] as string)
  return labels
    .map((label, index) => {
      const isBetween = index > 0 && index < labels.length - 2
      return isNumbered(label) || (isBetween && isPlace(label, isMachine)) ? '<id>' : label
    })
    .join('.')
    .replace(/^<id>(?:\.<id>)+(?=\.)/, '<id>')
}

function isNumbered(label: string): boolean {
  return /[0-9]/.test(label) && !/^[a-z]{1,3}[0-9]$/.test(label)
}

/** A region or a site between the name of the machine and the domain: node-7.fra.example.com. */
function isPlace(label: string, isOfMachine: boolean): boolean {
  return regions.test(label) || (isOfMachine && /^[a-z]{2,3}$/.test(label) && label !== 'svc')
}

const regions = /^(?:eu|us|ap|sa|af|me|ca|uk|cn|apac|emea|amer|latam)$/
