/** The title of a group: what a person would write about the failure. */
import { cutText, toStorableText } from '../text/storable-text.ts'
import { readSignature, type Signature } from './signature.ts'
import { longHole, writeTemplate } from './template.ts'

const titleMax = 300

/** `message`: the masked message. */
export function toTitle(message: string, signature: Signature): string {
  const shown = toPlainTitle(message)
  const root = toPlainTitle(writeTemplate(signature.root))
  const rootClass = signature.chain.at(-1)?.replace(/^.*[.\\:](?=[A-Za-z_$])/, '') ?? ''
  const cause = [rootClass, root].filter((text) => text !== '').join(': ')
  // Messages often repeat the message of their cause.
  const isKnown =
    cause === '' || (root !== '' && shown.includes(root)) || (root === '' && shown.includes(rootClass))
  const title = isKnown ? shown : shown === '' ? cause : `${shown} (caused by ${cause})`
  return toStorableText(cutText(title, titleMax))
}

/** The title of a group whose template became wider. */
export function toWiderTitle(template: string): string {
  const signature = readSignature(template)
  const message = writeTemplate(signature.message)
  const [thrower] = signature.frames
  // Free text is named by the function that throws it.
  return toTitle(message === longHole && thrower !== undefined ? `failure in ${thrower}` : message, signature)
}

/** JSON is shown without its brackets and quotes; learned values as `<*>`. */
function toPlainTitle(text: string): string {
  const shown = text.replaceAll('<**>', '<*>')
  if (!/^[[{]\s?["[{]/.test(shown)) return shown
  return shown
    .replaceAll(/[[\]{}"]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(?: ,)+/g, ',')
    .trim()
}
