import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../server/src/errors.ts'
import { approvedFiles, howToApprove, readApproved } from '../../tools/surface/approved-files.ts'

describe('what users rely on by name', () => {
  it.each(Object.keys(approvedFiles))('is as approved: %s', (path) => {
    expect(approvedFiles[path]?.(), `${path} has changed. ${howToApprove}`).toBe(readApproved(path))
  })

  it('has every error code, and no other, in docs/errors.md', () => {
    const listed = [...readApproved('docs/errors.md').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(
      ([, code]) => code,
    )
    expect(listed).toEqual([...errorCodes].toSorted())
  })
})
