import { Admin, Consumer } from '@platformatic/kafka'
import { createGroupOffsets, type GroupOffsets } from '../lag/group-offsets.ts'
import type { Cluster } from '../parts.ts'
import { type ConnectionOptions, readConnectionOptions } from './connection-options.ts'

/** The clients of a cluster that need no consumer group, opened when they are first used. */
export interface ClusterClients {
  options(): Promise<ConnectionOptions>
  admin(): Promise<Admin>
  /** Reads metadata and offsets. It never joins a group. */
  reader(): Promise<Consumer>
  readonly groupOffsets: GroupOffsets
  /** Closes the clients; they are opened again when they are used, with secrets that are read again. */
  reset(): Promise<void>
}

export function createClusterClients(cluster: Cluster): ClusterClients {
  let admin: Promise<Admin> | undefined
  let reader: Promise<Consumer> | undefined
  const options = () => readConnectionOptions(cluster)
  const getAdmin = (): Promise<Admin> => {
    admin ??= options().then((read) => new Admin(read))
    return admin
  }
  const close = async (client: Promise<Readonly<{ close(): Promise<void> }>> | undefined): Promise<void> => {
    await (await client?.catch(() => undefined))?.close().catch(() => {})
  }
  return {
    options,
    admin: getAdmin,
    reader: () => {
      reader ??= options().then((read) => new Consumer({ ...read, groupId: cluster.group }))
      return reader
    },
    groupOffsets: createGroupOffsets(getAdmin, cluster.group),
    reset: async () => {
      const closing = [close(admin), close(reader)]
      ;[admin, reader] = [undefined, undefined]
      await Promise.all(closing)
    },
  }
}
