/**
 * A foreign server's definition as a person types it, and back.
 *
 * Pure. Values are lines, `Name: value` or `NAME=value`; what follows
 * `TROPISM_SECRET_` in a value is the name of a secret, and what stands before
 * it its prefix: `Authorization: Bearer TROPISM_SECRET_SHOP`. No secret is typed here.
 * A value whose line nobody changed is what it was, also where a line does not show all of it.
 */
import type {
  McpServer,
  McpServerInput,
  McpTransport,
  OAuthAuthorization,
  SecretOrText
} from "@tropism/domain/mcp-server"

/** The fields of the form. */
export interface ServerDraft {
  readonly name: string
  readonly type: McpTransport["type"]
  readonly url: string
  readonly headers: string
  /** Who signs in; empty where nothing is said of it. */
  readonly signIn: "" | "server" | "member"
  readonly clientId: string
  /** The name of the client's secret. */
  readonly clientSecret: string
  /** Parted by spaces or lines. */
  readonly scopes: string
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

/** What of a server the form shows. */
export type ServerDefinition = Pick<
  McpServer,
  "name" | "transport" | "authorization" | "allowedTools" | "allowedEvents" | "untrusted"
>

const emptyDraft: ServerDraft = {
  name: "",
  type: "http",
  url: "",
  headers: "",
  signIn: "",
  clientId: "",
  clientSecret: "",
  scopes: "",
  command: "",
  args: "",
  env: "",
  allowedTools: "",
  allowedEvents: "",
  isUntrusted: false
}

export const draftOf = (server: ServerDefinition | undefined): ServerDraft => {
  if (server === undefined) return emptyDraft
  const { name, transport, authorization, allowedTools, allowedEvents = [], untrusted = false } = server
  const known: ServerDraft = {
    ...emptyDraft,
    name,
    signIn: authorization === undefined ? "" : (authorization.per ?? "server"),
    clientId: authorization?.clientId ?? "",
    clientSecret: authorization?.clientSecret?.secret ?? "",
    scopes: (authorization?.scopes ?? []).join("\n"),
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

/** All that a form says, on top of what the server was reached by before. */
export const inputOf = (draft: ServerDraft, before?: McpTransport): McpServerInput => {
  const authorization = authorizationIn(draft)
  return {
    name: draft.name.trim(),
    transport: transportOf(draft, before),
    ...(authorization === null ? {} : { authorization }),
    allowedTools: namesIn(draft.allowedTools),
    allowedEvents: namesIn(draft.allowedEvents),
    untrusted: draft.isUntrusted
  }
}

/** What is said of signing in; null where nothing is, and for a program, which has none. */
export const authorizationIn = (draft: ServerDraft): OAuthAuthorization | null => {
  if (draft.type !== "http" || draft.signIn === "") return null
  const [clientId, clientSecret] = [draft.clientId.trim(), draft.clientSecret.trim()]
  const scopes = namesIn(draft.scopes)
  return {
    type: "oauth",
    per: draft.signIn,
    ...(clientId === "" ? {} : { clientId }),
    ...(clientSecret === "" ? {} : { clientSecret: { secret: clientSecret } }),
    ...(scopes.length === 0 ? {} : { scopes })
  }
}

const transportOf = (draft: ServerDraft, before: McpTransport | undefined): McpTransport => {
  const ofHttp = before?.type === "http" ? before : undefined
  const ofStdio = before?.type === "stdio" ? before : undefined
  return draft.type === "http"
    ? { type: "http", url: draft.url.trim(), headers: entriesOf(draft.headers, ": ", ofHttp?.headers ?? {}) }
    : {
        type: "stdio",
        command: draft.command.trim(),
        args: argumentsOf(draft.args, ofStdio?.args ?? []),
        env: entriesOf(draft.env, "=", ofStdio?.env ?? {})
      }
}

const namesIn = (text: string): ReadonlyArray<string> => text.split(/\s+/).filter((name) => name !== "")

const argumentsOf = (text: string, before: ReadonlyArray<string>): ReadonlyArray<string> =>
  text === before.join("\n") ? before : text.split("\n").filter((line) => line !== "")

/** Whether lines do not show the arguments: changed as lines, they would be others. */
export const hasHiddenArguments = ({ transport }: Pick<McpServer, "transport">): boolean =>
  transport.type === "stdio" && (transport.args ?? []).some((each) => each === "" || /[\r\n]/.test(each))

const lineOf = (name: string, value: SecretOrText, sign: string): string =>
  name + sign + (typeof value === "string" ? value : `${value.prefix ?? ""}${value.secret}`)

const linesOf = (entries: Readonly<Record<string, SecretOrText>>, sign: string): string =>
  Object.entries(entries)
    .map(([name, value]) => lineOf(name, value, sign))
    .join("\n")

/** The values of the lines; one without a sign names something that the server will refuse, and say so. */
const entriesOf = (
  text: string,
  sign: string,
  before: Readonly<Record<string, SecretOrText>>
): Record<string, SecretOrText> => {
  const known = new Map(Object.entries(before).map((entry) => [lineOf(...entry, sign), entry]))
  return Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => known.get(line) ?? entryOf(line, sign.trim()))
  )
}

const entryOf = (line: string, sign: string): [name: string, value: SecretOrText] => {
  const at = line.indexOf(sign)
  return at === -1 ? [line.trim(), ""] : [line.slice(0, at).trim(), valueOf(line.slice(at + 1).trim())]
}

const valueOf = (text: string): SecretOrText => {
  const [, prefix, secret] = /^(.*?)(TROPISM_SECRET_[A-Z0-9_]+)$/.exec(text) ?? []
  if (secret === undefined) return text
  return prefix ? { secret, prefix } : { secret }
}
