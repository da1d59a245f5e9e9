import { type FormEvent, useState } from 'react'
import { type Session, signIn } from './session.ts'

/** Asks for an API key. The key is sent once; the browser then keeps a cookie that scripts cannot read. */
export function SignInPage({ onSignedIn }: { onSignedIn: (session: Session) => void }) {
  const [problem, setProblem] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)

  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault()
    const form = event.currentTarget
    const key = String(new FormData(form).get('key') ?? '').trim()
    setSending(true)
    try {
      onSignedIn(await signIn(key))
    } catch (error) {
      form.reset()
      setProblem(error instanceof Error ? error.message : String(error))
      setSending(false)
    }
  }
  return (
    <>
      <header>
        <h1>Redrive</h1>
      </header>
      <main>
        <form className="sign-in" onSubmit={(event) => void submit(event)}>
          <label htmlFor="key">API key</label>
          <input
            id="key"
            name="key"
            type="password"
            required
            autoComplete="current-password"
            spellCheck={false}
            placeholder="qtr-…"
          />
          <button type="submit" disabled={isSending}>
            Sign in
          </button>
          {problem !== null && <p role="alert">You could not sign in: {problem}.</p>}
          <p className="hint">
            An administrator creates a key with <code>redrive keys create</code>.
          </p>
        </form>
      </main>
    </>
  )
}
