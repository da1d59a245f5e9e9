import { Unavailable } from '../found.ts'
import { runCommand } from './run-command.ts'

export type User = Readonly<{ name: string; uid: number; gid: number }>

const createdName = 'redrive-test'

/** Whom to run a service as that refuses root. Undefined where we are not root and need not change. */
export async function unprivilegedUser(): Promise<User | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody', createdName]) {
    const user = await lookUp(name)
    if (user !== undefined) return user
  }
  await runCommand('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', createdName])
  const created = await lookUp(createdName)
  if (created === undefined) throw new Unavailable(`useradd gave no user ${createdName}`)
  return created
}

/** Fails early with a way out, where the service itself would say only "permission denied". */
export async function checkCanEnter(user: User | undefined, folder: string): Promise<void> {
  if (user === undefined) return
  try {
    await runCommand('test', ['-x', folder], { uid: user.uid, gid: user.gid, cwd: '/' })
  } catch {
    throw new Unavailable(`user ${user.name} may not enter ${folder}: set TMPDIR to a folder all may enter`)
  }
}

async function lookUp(name: string): Promise<User | undefined> {
  try {
    const [uid, gid] = await Promise.all([runCommand('id', ['-u', name]), runCommand('id', ['-g', name])])
    return { name, uid: Number(uid), gid: Number(gid) }
  } catch {
    // `id` fails for a user that does not exist, which is an answer.
    return undefined
  }
}
