/** Sends e-mails with nodemailer, over a connection that the rules for addresses allow. */
import { isIP } from 'node:net'
import { createTransport, type SendMailOptions, type Transporter } from 'nodemailer'
import type { ChannelTarget } from '../../../core/alerts/channel.ts'
import type { SendResult } from '../../../core/alerts/delivery/decide-delivery.ts'
import type { Notification } from '../../../core/alerts/notification.ts'
import { renderEmail } from '../../../core/alerts/render/render-email.ts'
import type { AddressChecker } from '../../webhook/push/address-rules.ts'
import type { ResolveHost } from '../../webhook/push/resolve-host.ts'
import { openGuardedSocket } from './guarded-socket.ts'

export type EmailParts = Readonly<{ checker: AddressChecker; resolve: ResolveHost; timeoutMs: number }>
type EmailTarget = ChannelTarget<'email'>

/** The parts of an error of nodemailer that matter here. */
type SmtpError = Error & {
  code?: string
  responseCode?: number
  response?: string
  rejectedErrors?: readonly SmtpError[]
}

/** `only`: instead of all recipients of the channel. */
export async function sendEmail(
  parts: EmailParts,
  target: EmailTarget,
  notification: Notification,
  only: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<SendResult> {
  const startedMs = performance.now()
  const measure = (): number => Math.round(performance.now() - startedMs)
  const transport = createSmtpTransport(parts, target)
  try {
    const mail = toMail(target, notification, only)
    const { rejectedErrors, response } = await transport.sendMail({ ...mail, signal } as SendMailOptions)
    const refused = (rejectedErrors ?? []) as readonly (SmtpError & { recipient?: string })[]
    const remaining = refused.flatMap((error) => (isPermanent(error) ? [] : (error.recipient ?? [])))
    const status = Number.parseInt(String(response), 10)
    return {
      isDelivered: true,
      latencyMs: measure(),
      status: Number.isNaN(status) ? null : status,
      ...(refused.length > 0 && { remaining, refused: refused.flatMap(({ recipient }) => recipient ?? []) }),
    }
  } catch (error) {
    const cause = error instanceof Error ? error : new Error(String(error))
    return { ...describe(cause, target.host, signal), latencyMs: measure() }
  } finally {
    transport.close()
  }
}

function createSmtpTransport({ checker, resolve, timeoutMs }: EmailParts, target: EmailTarget): Transporter {
  const { host, port, tls, user, password } = target
  return createTransport({
    host,
    port,
    secure: tls === 'tls',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    ...(user !== null && password !== null && { auth: { user, pass: password } }),
    tls: {
      minVersion: 'TLSv1.2',
      ...(isIP(host) === 0 && { servername: host }),
      ...(target.tls_ca !== null && { ca: target.tls_ca }),
    },
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    getSocket: (_options: unknown, callback: (error: Error | null, socket?: unknown) => void) => {
      openGuardedSocket({ host, port, timeoutMs }, checker, resolve).then(
        (connection) => callback(null, { connection }),
        (error: Error) => callback(error),
      )
    },
  } as Parameters<typeof createTransport>[0])
}

function toMail(target: EmailTarget, notification: Notification, only: readonly string[] | undefined) {
  const { subject, text, html } = renderEmail(notification)
  const domain = target.from.slice(target.from.lastIndexOf('@') + 1)
  const id = notification.id.replaceAll(/[^A-Za-z0-9_-]/g, '-')
  return {
    from: { name: 'Redrive', address: target.from },
    to: [...target.to],
    // A repetition for some recipients still shows all of them in the header `To`.
    ...(only !== undefined && { envelope: { from: target.from, to: [...only] } }),
    subject,
    text,
    html,
    messageId: `<${id}@${domain}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Redrive-Notification': id },
  }
}

/** SMTP: 5yz is permanent, 4yz is temporary. Without a reply, the reason is the network or TLS. */
function isPermanent({ responseCode, rejectedErrors, code }: SmtpError): boolean {
  if (code === 'FORBIDDEN_ADDRESS') return true
  if (rejectedErrors !== undefined && rejectedErrors.length > 0) return rejectedErrors.every(isPermanent)
  return responseCode !== undefined && responseCode >= 500
}

function describe(error: SmtpError, host: string, signal: AbortSignal): SendResult {
  const { responseCode, response, code = error.name } = error
  const isAborted = signal.aborted
  return {
    isDelivered: false,
    latencyMs: 0,
    status: responseCode ?? null,
    isPermanent: isPermanent(error),
    retryAfter: null,
    errorCode: isAborted ? 'ABORTED' : responseCode === undefined ? code : `smtp_${responseCode}`,
    errorClass: toErrorClass(code),
    message: `${host}: ${error.message.slice(0, 500)}`,
    response: response?.slice(0, 1_000) ?? null,
  }
}

function toErrorClass(code: string): string {
  if (code === 'EAUTH' || code === 'ENOAUTH') return 'SmtpAuthError'
  if (code === 'EENVELOPE') return 'SmtpRecipientError'
  if (code === 'ETLS' || /^(?:CERT_|ERR_TLS_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code))
    return 'TlsError'
  if (code === 'FORBIDDEN_ADDRESS') return 'ForbiddenAddressError'
  return code === 'ETIMEDOUT' ? 'TimeoutError' : 'SmtpError'
}
