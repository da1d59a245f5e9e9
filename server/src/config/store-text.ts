/**
 * A store as it may be shown: without its password, wherever that stands. Works on text that is no
 * proper URL too, because a complaint about a misspelt one must not show the password either.
 */
export function maskStore(text: string): string {
  return text
    .replace(/^(\w[\w+.-]*:(?:\/\/)?)?([^:@/]*):(?!\/\/).*@/s, '$1$2:[secret]@')
    .replace(/((?:^|[\s?&])password\s*=\s*)('[^']*'|[^\s&#]*)/gi, '$1[secret]')
}
