import type { AccessChange } from '../../../src/storage/contract/access.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { noon } from '../../make.ts'

/** Writes changes of access control that were checked against the newest version. */
export async function changeAccess(storage: Storage, ...changes: readonly AccessChange[]): Promise<void> {
  const { version } = await storage.readAccessState()
  await storage.write([{ op: 'change-access', version, changes }])
}

export async function putNamespace(storage: Storage, name: string): Promise<void> {
  const namespace = { name, description: '', keyTag: '', createdAt: noon }
  await changeAccess(storage, { change: 'put-namespace', namespace })
}
