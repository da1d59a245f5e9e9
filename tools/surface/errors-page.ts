import { errorCodes, errorEntry } from '../../server/src/errors.ts'

/** docs/errors.md, made from the catalogue. */
export function errorsPage(): string {
  const rows = errorCodes
    .toSorted()
    .map((code) => `| \`${code}\` | ${errorEntry(code).status} | ${forTable(errorEntry(code).hint)} |`)
  return `<!-- Made from server/src/errors.ts by tools/approve-surface.ts. Change it there. -->

# Errors

Every error has a **code** for machines, a **message** for people that names what is wrong with this request, and a
**hint**: the way out. Codes are stable; messages are not. \`/api/v1\` answers like this, with the status of the table:

\`\`\`json
{
  "error": {
    "code": "BAD_REQUEST",
    "message": "query.limit must be <= 1000",
    "hint": "Correct the request as the message says and send it again.",
    "request_id": "dbt1ucirpqc5a071dg40",
    "details": [{ "field": "query.limit", "message": "must be <= 1000" }]
  }
}
\`\`\`

\`details\` is there when a request breaks its schema. Other dialects render the same errors in their own way and may use
other statuses. Codes with status 500 that are about settings, ports or the store are seen at the start of the server, in
its log and on its standard error, not over HTTP.

| code | status | hint |
|---|---|---|
${rows.join('\n')}
`
}

function forTable(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<')
}
