import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../server/src/errors.ts'
import { approvedFiles, howToApprove, readApproved } from '../../tools/surface/approved-files.ts'

describe('the public surface', () => {
  it.each(Object.keys(approvedFiles))('the generated file %s matches the code', (path) => {
    expect(approvedFiles[path]?.(), `${path} has changed. ${howToApprove}`).toBe(readApproved(path))
  })

  it('docs/errors.md lists exactly the error codes of the catalogue', () => {
    const listed = [...readApproved('docs/errors.md').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(
      ([, code]) => code,
    )
    expect(listed).toEqual([...errorCodes].toSorted())
  })
})
