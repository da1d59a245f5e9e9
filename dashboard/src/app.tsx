import type { Client } from '@redrive/client'
import { useEffect, useState } from 'react'
import { readSession, type Session, signOut } from './session.ts'
import { SignInPage } from './sign-in-page.tsx'
import { StatusPage } from './status-page.tsx'

/** How often the page checks whether its session still exists. */
const checkMs = 30_000

/** Shows the status page, or asks a person to sign in if the server requires it. */
export function App({ client }: { client: Client }) {
  const [session, setSession] = useState<Session | null>(null)

  useEffect(() => {
    // A server that does not answer is reported by the status page.
    const check = (): void => void readSession().then(setSession, () => setSession((known) => known ?? open))
    check()
    const timer = setInterval(check, checkMs)
    return () => clearInterval(timer)
  }, [])

  if (session === null) return null
  if (session.is_required && session.user === null) return <SignInPage onSignedIn={setSession} />
  return (
    <>
      {session.user !== null && <Account user={session.user} onSignedOut={setSession} />}
      <StatusPage client={client} />
    </>
  )
}

const open: Session = { is_required: false, user: null }

function Account({ user, onSignedOut }: { user: string; onSignedOut: (session: Session) => void }) {
  return (
    <p className="account">
      Signed in as <strong>{user}</strong>{' '}
      <button type="button" onClick={() => void signOut().then(onSignedOut)}>
        Sign out
      </button>
    </p>
  )
}
