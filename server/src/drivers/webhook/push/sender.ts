/** The interface between the dispatcher and the sender: one attempt per call, bounded in time and memory. */
import type { Attempt } from '../../../core/webhook/attempt.ts'
import type { DnsOptions } from './resolve-host.ts'

export type PushRequest = Readonly<{
  url: string
  /** Names and values in turn, as `createPushHeaders` returns them. */
  headers: readonly string[]
  body: Uint8Array
  /** Overrides the total timeout of the sender. */
  timeoutMs?: number
}>

export type Sender = Readonly<{
  /** Resolves with the attempt, whatever the receiver does; rejects only for a defect of the caller. */
  send(request: PushRequest): Promise<Attempt>
  /** Ends the pushes in progress, and all later ones, with `failure.kind` `aborted`. */
  abort(): void
  /** Why a push to this URL would fail with `forbidden-address` or `protocol`, without any I/O. */
  checkUrl(url: string): string | undefined
  counts(): SenderCounts
  /** Ends idle connections at once, and waits for pushes in progress. */
  close(): Promise<void>
}>

export type SenderCounts = Readonly<{ origins: number; sockets: number; inProgress: number }>

export type AddressRules = Readonly<{
  /** `127.0.0.0/8` and `::1`. Protected mode allows them. */
  isLoopbackAllowed: boolean
  /** Host names (`hooks.internal`, `*.internal`) and CIDRs (`10.1.0.0/16`) that are allowed in addition. */
  allowed: readonly string[]
}>

export type SenderOptions = Readonly<{
  addresses: AddressRules
  /** The whole attempt, from the call to the last byte that is read. Default 30 s. */
  timeoutMs?: number
  connectTimeoutMs?: number
  /** How long the status and the headers may take once the request is sent. */
  headersTimeoutMs?: number
  /** How long the body may take once the headers have arrived. Default 5 s. */
  bodyTimeoutMs?: number
  /** Connections to one origin at once. */
  connectionsPerOriginMax?: number
  /** Origins with open connections. The least recently used idle ones are closed first. */
  originsMax?: number
  /** Idle sockets of all origins together. */
  idleSocketsMax?: number
  idleTimeoutMs?: number
  dns?: DnsOptions
  /** PEM text of authorities to trust instead of the usual ones. */
  tlsCa?: string
}>
