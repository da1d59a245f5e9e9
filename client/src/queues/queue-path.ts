/** The path of a queue under `/api/v1/`. */
export function toQueuePath(queue: string): string {
  // URL parsers remove the path segments `.` and `..`, even escaped. Queue names cannot contain a tilde, so
  // the server accepts a tilde in front of these two names.
  const prefix = queue === '.' || queue === '..' ? '~' : ''
  return `queues/${prefix}${encodeURIComponent(queue)}`
}
