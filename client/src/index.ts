export { type CallOptions, type Client, type ClientOptions, createClient } from './client.ts'
export { RedriveError } from './error.ts'
export type { ErrorBody, Health, HealthCheck, ServerInfo } from './wire.ts'
