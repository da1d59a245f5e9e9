import { expect, it } from 'vitest'
import { createPasswordCredentials } from './password-credentials.ts'
import { Secret } from './secret.ts'

function createTestCredentials() {
  const state = { password: 'first', error: undefined as Error | undefined }
  const notices: string[] = []
  const credentials = createPasswordCredentials({
    user: 'app',
    readPassword: async () => {
      if (state.error) throw state.error
      return new Secret(state.password)
    },
    notify: (_, sentence) => notices.push(sentence),
  })
  return { credentials, state, notices }
}

it('the next read returns a rotated password', async () => {
  const { credentials, state } = createTestCredentials()
  expect(await credentials.getCurrent()).toEqual({ user: 'app', password: 'first' })
  state.password = 'second'
  expect(await credentials.getCurrent()).toEqual({ user: 'app', password: 'second' })
})

it('the last known password stays in use, with a warning, while the password cannot be read', async () => {
  const { credentials, state, notices } = createTestCredentials()
  await credentials.getCurrent()
  state.error = new Error('Vault is sealed')
  expect(await credentials.getCurrent()).toEqual({ user: 'app', password: 'first' })
  expect(notices).toEqual([
    "the store's password cannot be read; the last known password stays in use: Vault is sealed",
  ])
})

it('current rejects if the password could never be read', async () => {
  const { credentials, state } = createTestCredentials()
  state.error = new Error('Vault is sealed')
  await expect(credentials.getCurrent()).rejects.toThrow('Vault is sealed')
})
