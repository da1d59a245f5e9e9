/** Quotas of namespaces and redaction rules of queues. */
export const limits = ''
