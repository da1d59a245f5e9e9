import type { Notify } from '../config/notify.ts'
import type { Secret } from '../config/secrets/secret.ts'
import { createSecrets } from '../config/secrets/secrets.ts'
import type { Settings } from '../config/settings/settings.ts'
import { openStoreTarget } from '../config/store/open-store-target.ts'
import type { StoreTarget } from '../storage/open-storage.ts'
import type { Context } from './context.ts'

export type OpenedTarget = Readonly<{
  target: StoreTarget
  /** Reads a secret of the settings, which may be a reference. */
  readSecret: (given: Secret) => Promise<Secret>
  /** Revokes leased credentials. Call it after the store is closed. */
  close(): Promise<void>
}>

/** Revoking leases is optional: a Vault that does not answer must not delay the exit. */
const closeMsMax = 3_000

export async function openTarget(
  settings: Settings,
  context: Context,
  notify: Notify,
): Promise<OpenedTarget> {
  const { environment, folder } = context
  const secrets = createSecrets({ settings, environment, folder, notify })
  const target = await openStoreTarget(settings, secrets, notify).catch(async (error: unknown) => {
    await waitAtMost(secrets.close(), closeMsMax)
    throw error
  })
  const close = async (): Promise<void> => {
    if (target.kind === 'postgres') await target.credentials?.close()
    await secrets.close()
  }
  return { target, readSecret: secrets.read, close: () => waitAtMost(close(), closeMsMax) }
}

async function waitAtMost(work: Promise<void>, msMax: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, msMax)
  })
  await Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}
