/** Names of fields that validators write in front of a verb: `"order.email" is required`. */

const verbAhead =
  /^["'`]? (?:must|should|is (?:a )?(?:required|missing|mandatory)|(?:can(?:not|['’]t)|may not|shall not) be (?:null|blank|empty|undefined|missing)|is not allowed to be|field|property|column|attribute|parameter|argument|tag)\b/

/** Whether the word that ends at this place is what a rule is about. */
export function isFieldAhead(text: string, end: number): boolean {
  return text[end] !== undefined && verbAhead.test(text.slice(end, end + 32))
}

/** The path of a field without indexes: `items[17].price`, `/items/17/price`. Undefined: it is no path. */
export function toFieldPath(text: string): string | undefined {
  if (!/^[/$]?[\p{L}_$][\p{L}\p{N}_$.[\]/-]{0,99}$/u.test(text) || /\p{L}[0-9]{3}/u.test(text))
    return undefined
  return text.replaceAll(/\[[0-9]+\]/g, '[]').replaceAll(/(?<=[/.])[0-9]+(?=[/.]|$)/g, '[]')
}
