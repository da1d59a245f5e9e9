import { randomBytes } from 'node:crypto'
import { createPgClient } from '../../../server/src/storage/postgres/connection/tls-connection.ts'

/** An empty database on the shared server. */
export interface Database extends AsyncDisposable {
  readonly url: string
  /** Drops the database and ends its sessions. Can be called twice. */
  drop(): Promise<void>
}

export async function createDatabaseOn(serverUrl: string): Promise<Database> {
  const name = `redrive_test_${randomBytes(8).toString('hex')}`
  await execute(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const drop = async (): Promise<void> => execute(serverUrl, `drop database if exists ${name} with (force)`)
  return { url: url.href, drop, [Symbol.asyncDispose]: drop }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = createPgClient(url)
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
