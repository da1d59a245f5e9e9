/** The session of this browser. */
export type Session = Readonly<{ is_required: boolean; user: string | null }>

export async function readSession(): Promise<Session> {
  return send('GET')
}

/** Rejects with a sentence for people. */
export async function signIn(key: string): Promise<Session> {
  return send('POST', { key })
}

export async function signOut(): Promise<Session> {
  return send('DELETE')
}

async function send(method: string, body?: object): Promise<Session> {
  const response = await fetch('/api/v1/session', {
    method,
    credentials: 'same-origin',
    ...(body !== undefined && {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
  const answer = (await response.json()) as Session & { error?: { message: string } }
  if (!response.ok) throw new Error(answer.error?.message ?? `the server answered ${response.status}`)
  return answer
}
