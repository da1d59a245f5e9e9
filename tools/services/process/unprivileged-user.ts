import { ServiceUnavailable } from '../service.ts'
import { runCommand } from './run-command.ts'

export type User = Readonly<{ name: string; uid: number; gid: number }>

const createdName = 'redrive-test'

/** Finds a user for a service that refuses to run as root. Undefined if this process does not run as root. */
export async function findUnprivilegedUser(): Promise<User | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody', createdName]) {
    const user = await lookUp(name)
    if (user !== undefined) return user
  }
  await runCommand('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', createdName])
  const created = await lookUp(createdName)
  if (created === undefined) throw new ServiceUnavailable(`useradd created no user ${createdName}`)
  return created
}

/** Fails early with a hint: the service itself would only report "permission denied". */
export async function checkCanEnter(user: User | undefined, folder: string): Promise<void> {
  if (user === undefined) return
  try {
    await runCommand('test', ['-x', folder], { uid: user.uid, gid: user.gid, cwd: '/' })
  } catch {
    throw new ServiceUnavailable(
      `user ${user.name} cannot enter ${folder}: set TMPDIR to a folder that every user can enter`,
    )
  }
}

async function lookUp(name: string): Promise<User | undefined> {
  try {
    const [uid, gid] = await Promise.all([runCommand('id', ['-u', name]), runCommand('id', ['-g', name])])
    return { name, uid: Number(uid), gid: Number(gid) }
  } catch {
    // `id` fails for a user that does not exist.
    return undefined
  }
}
