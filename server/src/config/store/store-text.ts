/**
 * Removes the password from the text of a store, so that it can be shown. It also works for invalid URLs,
 * because their error messages must not show the password either.
 */
export function maskStore(text: string): string {
  return text
    .replace(/^(\w[\w+.-]*:(?:\/\/)?)?([^:@/]*):(?!\/\/).*@/s, '$1$2:[secret]@')
    .replace(/((?:^|[\s?&])password\s*=\s*)('[^']*'|[^\s&#]*)/gi, '$1[secret]')
}
