import { describe, expect, it } from 'vitest'
import { refuseNonLocal } from './local-only.ts'

describe('protected mode', () => {
  it.each([
    { host: '127.0.0.1:8080' },
    { host: 'localhost:8080' },
    { host: '[::1]:8080' },
    { host: 'redrive.localhost' },
    { host: 'localhost:8080', origin: 'http://localhost:8080' },
    { host: 'localhost:8080', origin: 'http://127.0.0.1:5173' },
    {},
  ])('a request with headers %j comes from this machine and is accepted', (headers) =>
    expect(() => refuseNonLocal(headers)).not.toThrow(),
  )

  it.each([
    { host: 'evil.example:8080' },
    { host: '127.0.0.1.evil.example' },
    { host: '' },
    { host: 'user@localhost' },
    { host: '10.0.0.1:8080' },
    { host: 'localhost:8080', origin: 'https://evil.example' },
    { host: 'localhost:8080', origin: 'null' },
    { host: 'localhost:8080', origin: 'http://localhost.evil.example' },
    { host: 'localhost:8080', origin: 'http://evil.example/http://localhost' },
  ])('a request with headers %j comes from elsewhere and is refused', (headers) =>
    expect(() => refuseNonLocal(headers)).toThrow(expect.objectContaining({ code: 'HOST_REFUSED' })),
  )
})
