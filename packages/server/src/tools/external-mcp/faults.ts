/**
 * What may go wrong with a foreign server, and whether the tool may have worked all the same.
 *
 * The SDK raises errors of many kinds. Here they become one, which answers the
 * only question that matters after a call: was it certainly not made, was it
 * answered, or does nobody know?
 */
import { isIP } from "node:net"
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client"
import { signedOutText, type McpTransport } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Predicate, Schema, Context, Effect } from "effect"
import { ClosedAddress, isPublicAddress } from "../../agents/outside-network.ts"
import { externalLimits } from "./limits.ts"

/**
 * A foreign server did not do what it was asked for.
 *
 * **Details** `unmade`: the call did not reach the server. `answered`: the server answered with an error.
 * `unknown`: it was sent, and no answer came.
 */
export class ExternalFault extends Schema.TaggedError<ExternalFault>()("ExternalFault", {
  outcome: Schema.Literals(["unmade", "answered", "unknown"]),
  message: Schema.String,
  /** The connection is of no more use. */
  isBroken: Schema.Boolean,
  /** The server has forgotten the session: it refused the message, and takes it in a new session. */
  isForgotten: Schema.optionalKey(Schema.Boolean),
  /** Nobody was asked: it is what was wrong the last time. */
  isRepeated: Schema.optionalKey(Schema.Boolean),
  /** The message is this program's own: the server has no say in it. */
  isOurs: Schema.optionalKey(Schema.Boolean),
  /** The run aborted the call, and waits for no answer. */
  isAborted: Schema.optionalKey(Schema.Boolean),
  /** Somebody has to sign in before the server can be called. */
  isSignedOut: Schema.optionalKey(Schema.Boolean)
}) {}

/** What stands in for an answer whose stream ended before it: the server may have worked all the same. */
export const endedUnanswered = {
  code: -32_096,
  message: "The server ended the stream of its answer without an answer"
} as const

/** Why an answer is read no further. */
export const tooLongText = (maxBytes: number) => `The answer is longer than ${maxBytes} bytes`

const tooLongWords = tooLongText(externalLimits.messageMaxBytes)

/** What stands in for an answer that is longer than any may be; whoever sent it is heard no further. */
export const tooLong = { code: -32_095, message: tooLongWords } as const

/** A message that did not leave this program. */
export class NeverSent extends Error {}

/** The same fault, told otherwise. */
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

/** Nobody is signed in to the server, as this program itself knows. */
export const signedOut = (message: string): ExternalFault => faultLike(unmade(message), { isSignedOut: true })

/** It was sent, and no answer came in time. */
export const unanswered = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "unknown", message, isBroken: false, isOurs: true })

/** The run aborted it before an answer came. */
export const aborted = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "unknown", message, isBroken: false, isOurs: true, isAborted: true })

/** The server has said no, and may be asked again. */
export const answered = (message: string): ExternalFault =>
  new ExternalFault({ outcome: "answered", message, isBroken: false })

/** One line of an error's text, within its bound. */
export const lineOf = (text: string): string =>
  beginningOf(text.replace(/[\p{Cc}\s]+/gu, " ").trim(), externalLimits.faultMaxChars).toWellFormed()

/** Reads an error that the SDK, or the network below it, has raised. */
export const toFault = (error: unknown): ExternalFault => {
  const text = lineOf(error instanceof Error ? error.message : String(error))
  // The SDK raises a plain error where its connection is closed before it sends anything.
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

/** These say that a request was not taken; after another 4xx nobody would guess that it was not looked at. */
const notTaken: ReadonlySet<number> = new Set([401, 403, 404, 405, 406, 415, 421, 429])

/** A refusal comes before the work, an answer of 5xx may come after it. */
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
  // Some servers answer 400 where they know a session no more.
  return new ExternalFault({
    outcome: status >= 400 && status < 500 ? "answered" : "unknown",
    message,
    isBroken: status === 400 || status >= 500
  })
}

// Whether foreign servers may be programs of this machine, or lie in its network.
//
// Whoever may add a server could otherwise run any program as this server's
// account, and reach what only this machine reaches. The operator decides; where
// nobody has, a server that only this machine can call allows it to whoever has
// the server anyway, by addresses that say themselves that they are local (decision 0028).

/** Who may name programs of this machine and addresses of its network. */
export type LocalPermit = "nobody" | "serverTokens" | "admins"

export class LocalMcpServers extends Context.Reference<LocalPermit>("@tropism/server/tool/LocalMcpServers", {
  defaultValue: () => "nobody"
}) {}

const howTo = "the operator allows it with TROPISM_LOCAL_MCP_SERVERS=true"

/** Refuses a program, and an address that says itself that it is local; a name is looked up when it is called. */
export const checkPermit = Effect.fnUntraced(function* (
  transport: McpTransport
): Effect.fn.Return<void, ExternalFault> {
  if ((yield* LocalMcpServers) !== "nobody") return
  if (transport.type === "stdio") return yield* unmade(`This server runs no programs for MCP: ${howTo}`)
  if (isLocal(transport)) return yield* unmade(`This server calls no MCP server in its own network: ${howTo}`)
})

/** Why somebody may not name what is local; undefined when they may. `isServerToken` is whether their token reaches every project. */
export const localFault = Effect.fnUntraced(function* (transport: McpTransport, isServerToken: boolean) {
  const isOpen = isServerToken || (yield* LocalMcpServers) !== "serverTokens"
  return isOpen || !isLocal(transport)
    ? undefined
    : `Programs and addresses of the server's own machine are for the server's admin to add: ${howTo} to admins of projects, too`
})

/** Whether a call of this address may end in this machine's network. */
export const mayEndHere = Effect.fnUntraced(function* (transport: McpTransport) {
  const permit = yield* LocalMcpServers
  return permit === "admins" || (permit === "serverTokens" && isLocal(transport))
})

const isLocal = (transport: McpTransport): boolean => {
  if (transport.type === "stdio") return true
  const host = new URL(transport.url).hostname.replace(/^\[|\]$/g, "")
  return isIP(host) === 0 ? host === "localhost" || host.endsWith(".localhost") : !isPublicAddress(host)
}
