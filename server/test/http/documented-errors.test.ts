import { describe, expect, it } from 'vitest'
import { checkDocumentedError } from './documented-errors.ts'

const check = (method: string, path: string, status: number, code: unknown) => () =>
  checkDocumentedError(method, `http://localhost${path}`, status, code)

describe('the check of documented errors', () => {
  it('an error that its route does not document is reported', () => {
    expect(check('GET', '/api/v1/letters/2Xk?payload_form=text', 404, 'LETTER_NOT_FOUND')).not.toThrow()
    expect(check('GET', '/api/v1/letters/2Xk', 409, 'CAMPAIGN_STATE')).toThrow(
      'GET /api/v1/letters/{id} does not document its error 409 CAMPAIGN_STATE',
    )
    expect(check('GET', '/api/v1/letters/2Xk', 400, 'LETTER_NOT_FOUND')).toThrow('does not document')
  })

  it('static segments win over parameters, and unknown methods and paths are not checked', () => {
    expect(check('GET', '/api/v1/letters/counts', 404, 'LETTER_NOT_FOUND')).toThrow('/api/v1/letters/counts')
    expect(check('POST', '/api/v1/dlq/requeue', 404, 'NOT_FOUND')).not.toThrow()
    expect(check('GET', '/api/v1/dlq/requeue', 405, 'VALIDATION_ERROR')).not.toThrow()
    expect(check('GET', '/nowhere', 404, 'NOT_FOUND')).not.toThrow()
  })
})
