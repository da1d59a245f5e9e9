import { expect, it } from 'vitest'
import { createPasswordCredentials } from './password-credentials.ts'
import { Secret } from './secret.ts'

function rotating() {
  const state = { password: 'first', error: undefined as Error | undefined }
  const said: string[] = []
  const credentials = createPasswordCredentials({
    user: 'app',
    readPassword: async () => {
      if (state.error) throw state.error
      return new Secret(state.password)
    },
    notify: (_, sentence) => said.push(sentence),
  })
  return { credentials, state, said }
}

it('gives a password that was rotated to whoever asks again', async () => {
  const { credentials, state } = rotating()
  expect(await credentials.current()).toEqual({ user: 'app', password: 'first' })
  state.password = 'second'
  expect(await credentials.current()).toEqual({ user: 'app', password: 'second' })
})

it('goes on with the last password, and says so, while it cannot be read', async () => {
  const { credentials, state, said } = rotating()
  await credentials.current()
  state.error = new Error('Vault is sealed')
  expect(await credentials.current()).toEqual({ user: 'app', password: 'first' })
  expect(said).toEqual(["the store's password cannot be read again, the last one is used: Vault is sealed"])
})

it('fails when it was never read', async () => {
  const { credentials, state } = rotating()
  state.error = new Error('Vault is sealed')
  await expect(credentials.current()).rejects.toThrow('Vault is sealed')
})
