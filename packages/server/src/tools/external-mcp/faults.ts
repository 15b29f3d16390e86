/**
 * Faults of foreign servers, and whether the tool may have run.
 *
 * The SDK raises errors of many kinds. They become one error that answers what matters after a call: it was not made, it
 * was answered, or its outcome is unknown.
 */
import { isIP } from "node:net"
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client"
import { signedOutText, type McpTransport } from "@tropism/domain/mcp-server"
import { beginningOf, shortenedAtWord } from "@tropism/domain/text-beginning"
import { Predicate, Schema, Context, Effect } from "effect"
import { ClosedAddress, isPublicAddress } from "../../agents/outside-network.ts"
import { externalLimits } from "./limits.ts"

/**
 * A request to a foreign server failed.
 *
 * **Details** `unmade`: the call did not reach the server. `answered`: the server answered with an error. `unknown`: it was
 * sent, and no answer came.
 */
export class ExternalFault extends Schema.TaggedError<ExternalFault>()("ExternalFault", {
  outcome: Schema.Literals(["unmade", "answered", "unknown"]),
  message: Schema.String,
  /** The connection is unusable. */
  isBroken: Schema.Boolean,
  /** The server has forgotten the session: it refused the message and accepts it in a new session. */
  isForgotten: Schema.optionalKey(Schema.Boolean),
  /** Repeats the last fault; no request was sent. */
  isRepeated: Schema.optionalKey(Schema.Boolean),
  /** The message is this program's own and contains no text of the server. */
  isOurs: Schema.optionalKey(Schema.Boolean),
  /** The run aborted the call and needs no answer. */
  isAborted: Schema.optionalKey(Schema.Boolean),
  /** A person has to sign in before the server can be called. */
  isSignedOut: Schema.optionalKey(Schema.Boolean)
}) {}

/** Replaces an answer whose stream ended early; the tool may have run. */
export const endedUnanswered = {
  code: -32_096,
  message: "The server ended the stream of its answer without an answer"
} as const

/** Why an answer was cut off. */
export const tooLongText = (maxBytes: number) => `The answer is longer than ${maxBytes} bytes`

const tooLongWords = tooLongText(externalLimits.messageMaxBytes)

/** Replaces an answer over the size limit; reading stops there. */
export const tooLong = { code: -32_095, message: tooLongWords } as const

/** A message that this program did not send. */
export class NeverSent extends Error {}

/** Copies a fault with changes. */
export const faultLike = (
  { isAborted, isBroken, isForgotten, isOurs, isRepeated, isSignedOut, message, outcome }: ExternalFault,
  changed: Partial<
    Pick<ExternalFault, "outcome" | "message" | "isBroken" | "isOurs" | "isRepeated" | "isSignedOut">
  >
): ExternalFault =>
  new ExternalFault({
    outcome,
    message,
    isBroken,
    ...(isForgotten === undefined ? {} : { isForgotten }),
    ...(isRepeated === undefined ? {} : { isRepeated }),
    ...(isOurs === undefined ? {} : { isOurs }),
    ...(isAborted === undefined ? {} : { isAborted }),
    ...(isSignedOut === undefined ? {} : { isSignedOut }),
    ...changed
  })

/** The call did not reach the server, as this program itself knows. */
export const unmade = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "unmade", message, isBroken: true, isOurs: true })

/** No account is signed in to the server, as this program itself knows. */
export const signedOut = (message: string): ExternalFault => faultLike(unmade(message), { isSignedOut: true })

/** The request was sent and timed out. */
export const unanswered = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "unknown", message, isBroken: false, isOurs: true })

/** The run aborted the call before an answer came. */
export const aborted = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "unknown", message, isBroken: false, isOurs: true, isAborted: true })

/** The server refused and can be called again. */
export const answered = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "answered", message, isBroken: false })

/** Returns an error's text as one line within its limit, cut after a whole word. */
export const lineOf = (text: string): string =>
  shortenedAtWord(text.replace(/[\p{Cc}\s]+/gu, " ").trim(), externalLimits.faultMaxChars - 1).toWellFormed()

/** Lists what was left out and why in one line, the first entries whole. */
export const leftOutLine = (words: string, leftOut: ReadonlyArray<string>): string => {
  const room = externalLimits.faultMaxChars - externalLimits.leftOutRestChars
  let line = words
  for (const [index, one] of leftOut.entries()) {
    const next = `${line}${index === 0 ? " " : ", "}${one}`
    if (index > 0 && next.length > room) return `${line}, and ${leftOut.length - index} more`
    line = next
  }
  return line
}

/** Formats a name with the reason why it was left out. */
export const leftOutFor = (name: string, reason: string): string =>
  `${name} (${shortenedAtWord(lineOf(reason), externalLimits.leftOutReasonMaxChars)})`

/** Converts an error of the SDK or the network. */
export const toFault = (error: unknown): ExternalFault => {
  const text = lineOf(error instanceof Error ? error.message : String(error))
  // The SDK raises a plain error when its connection is closed before it sends.
  if (error instanceof NeverSent || text === "Not connected") return unmade("The connection is closed")
  if (error instanceof ClosedAddress) return unmade(text)
  if (error instanceof ProtocolError)
    return error.code === endedUnanswered.code || error.code === tooLong.code
      ? new ExternalFault({ outcome: "unknown", message: text, isBroken: error.code === tooLong.code })
      : new ExternalFault({ outcome: "answered", message: text, isBroken: false })
  if (error instanceof SdkHttpError) return httpFault(error)
  if (error instanceof SdkError) return sdkFault(error, text)
  const code = Predicate.hasProperty(error, "code") ? String(error.code) : ""
  if (/ConnectionRefused|ECONNREFUSED|ENOTFOUND|ENOENT|EACCES|FailedToOpenSocket/.test(code))
    return unmade(text)
  return new ExternalFault({ outcome: "unknown", message: text, isBroken: true })
}

const sdkFault = ({ code, data }: SdkError, text: string): ExternalFault => {
  if (code === SdkErrorCode.NotConnected) return unmade("The connection is closed")
  if (code === SdkErrorCode.UnsupportedResultType) {
    const type = Predicate.hasProperty(data, "resultType") ? lineOf(String(data.resultType)) : "unknown"
    const message = `The server answered with a result of the type ${beginningOf(type, 50)}, which nobody asked it for and nobody can read`
    return new ExternalFault({ outcome: "unknown", message, isBroken: false })
  }
  const isBroken = code === SdkErrorCode.ConnectionClosed || code === SdkErrorCode.SendFailed
  return new ExternalFault({ outcome: "unknown", message: text, isBroken })
}

/** Statuses of a request that was not processed; any other 4xx leaves that open. */
const notTaken: ReadonlySet<number> = new Set([401, 403, 404, 405, 406, 415, 421, 429])

/** A refusal precedes the work; a 5xx may follow it. */
const httpFault = (error: SdkHttpError): ExternalFault => {
  const status = Number(error.status)
  const said =
    Predicate.hasProperty(error.data, "text") && typeof error.data.text === "string" ? error.data.text : ""
  const isRefusal = status === 401 || status === 403
  const message = lineOf(isRefusal && said !== "" ? said : `${error.message} (HTTP ${status})`)
  if (notTaken.has(status) || (status >= 300 && status < 400))
    return new ExternalFault({
      outcome: "unmade",
      message,
      isBroken: true,
      ...(status === 404 ? { isForgotten: true } : {}),
      ...(isRefusal && message.startsWith(signedOutText) ? { isSignedOut: true } : {})
    })
  // Some servers answer 400 for a session they have forgotten.
  return new ExternalFault({
    outcome: status >= 400 && status < 500 ? "answered" : "unknown",
    message,
    isBroken: status === 400 || status >= 500
  })
}

// Decides whether foreign servers may be local programs or addresses in this machine's network.
//
// Otherwise anyone who may add a server could run any program under this server's account and reach its network. The operator
// decides. By default a server that only this machine can call allows it to users with full access to the server, by addresses
// that are local by name (decision 0028).

/** Who may define local programs and addresses. */
export type LocalPermit = "nobody" | "serverTokens" | "admins"

export class LocalMcpServers extends Context.Reference<LocalPermit>("@tropism/server/tool/LocalMcpServers", {
  defaultValue: () => "nobody"
}) {}

const howTo = "the operator allows it with TROPISM_LOCAL_MCP_SERVERS=true"

/** Refuses a program and an address that is local by name; other names are resolved at the call. */
export const checkPermit = Effect.fnUntraced(function* (
  transport: McpTransport
): Effect.fn.Return<void, ExternalFault> {
  if ((yield* LocalMcpServers) !== "nobody") return
  if (transport.type === "stdio") return yield* unmade(`This server runs no programs for MCP: ${howTo}`)
  if (isLocal(transport)) return yield* unmade(`This server calls no MCP server in its own network: ${howTo}`)
})

/** Returns why a user may not define a local server; undefined when they may. `isServerToken`: their token reaches every project. */
export const localFault = Effect.fnUntraced(function* (transport: McpTransport, isServerToken: boolean) {
  const isOpen = isServerToken || (yield* LocalMcpServers) !== "serverTokens"
  return isOpen || !isLocal(transport)
    ? undefined
    : `Programs and addresses of the server's own machine are for the server's admin to add: ${howTo} to admins of projects, too`
})

/** Whether a call to this address may end in this machine's network. */
export const mayEndHere = Effect.fnUntraced(function* (transport: McpTransport) {
  const permit = yield* LocalMcpServers
  return permit === "admins" || (permit === "serverTokens" && isLocal(transport))
})

const isLocal = (transport: McpTransport): boolean => {
  if (transport.type === "stdio") return true
  const host = new URL(transport.url).hostname.replace(/^\[|\]$/g, "")
  return isIP(host) === 0 ? host === "localhost" || host.endsWith(".localhost") : !isPublicAddress(host)
}
