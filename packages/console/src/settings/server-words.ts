/**
 * A foreign server's definition as a person types it, and back.
 *
 * Pure. Values are lines, `Name: value` or `NAME=value`; what follows
 * `TROPISM_SECRET_` in a value is the name of a secret, and what stands before
 * it its prefix: `Authorization: Bearer TROPISM_SECRET_SHOP`. No secret is typed here.
 */
import type { McpServer, McpServerInput, McpTransport, SecretOrText } from "@tropism/domain/mcp-server"

/** The fields of the form. */
export interface ServerDraft {
  readonly name: string
  readonly type: McpTransport["type"]
  readonly url: string
  readonly headers: string
  readonly command: string
  /** One a line. */
  readonly args: string
  readonly env: string
  /** Names and patterns, parted by spaces or lines. */
  readonly allowedTools: string
  /** The same of events. */
  readonly allowedEvents: string
  readonly isUntrusted: boolean
}

const emptyDraft: ServerDraft = {
  name: "",
  type: "http",
  url: "",
  headers: "",
  command: "",
  args: "",
  env: "",
  allowedTools: "",
  allowedEvents: "",
  isUntrusted: false
}

export const draftOf = (server: McpServer | undefined): ServerDraft => {
  if (server === undefined) return emptyDraft
  const { name, transport, allowedTools, allowedEvents = [], untrusted = false } = server
  const known = {
    ...emptyDraft,
    name,
    allowedTools: allowedTools.join("\n"),
    allowedEvents: allowedEvents.join("\n"),
    isUntrusted: untrusted
  }
  return transport.type === "http"
    ? { ...known, type: "http", url: transport.url, headers: linesOf(transport.headers ?? {}, ": ") }
    : {
        ...known,
        type: "stdio",
        command: transport.command,
        args: (transport.args ?? []).join("\n"),
        env: linesOf(transport.env ?? {}, "=")
      }
}

export const inputOf = (draft: ServerDraft): McpServerInput => ({
  name: draft.name.trim(),
  transport:
    draft.type === "http"
      ? { type: "http", url: draft.url.trim(), headers: entriesOf(draft.headers, ":") }
      : {
          type: "stdio",
          command: draft.command.trim(),
          args: draft.args.split("\n").filter((line) => line !== ""),
          env: entriesOf(draft.env, "=")
        },
  allowedTools: namesIn(draft.allowedTools),
  allowedEvents: namesIn(draft.allowedEvents),
  untrusted: draft.isUntrusted
})

const namesIn = (text: string): ReadonlyArray<string> => text.split(/\s+/).filter((name) => name !== "")

const linesOf = (entries: Readonly<Record<string, SecretOrText>>, sign: string): string =>
  Object.entries(entries)
    .map(
      ([name, value]) =>
        name + sign + (typeof value === "string" ? value : `${value.prefix ?? ""}${value.secret}`)
    )
    .join("\n")

/** The values of the lines; one without a sign names something that the server will refuse, and say so. */
const entriesOf = (text: string, sign: string): Record<string, SecretOrText> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const at = line.indexOf(sign)
        return at === -1 ? [line.trim(), ""] : [line.slice(0, at).trim(), valueOf(line.slice(at + 1).trim())]
      })
  )

const valueOf = (text: string): SecretOrText => {
  const [, prefix, secret] = /^(.*?)(TROPISM_SECRET_[A-Z0-9_]+)$/.exec(text) ?? []
  if (secret === undefined) return text
  return prefix ? { secret, prefix } : { secret }
}
