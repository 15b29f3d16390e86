/**
 * What may go wrong with a foreign server, and whether the tool may have worked all the same.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The SDK raises errors of many kinds. Here they become one, which answers the
 * only question that matters after a call: was it certainly not made, was it
 * answered, or does nobody know?
 */
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client"
import { signedOutText } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Predicate, Schema } from "effect"
import { ClosedAddress } from "../agent/outside-network.ts"
import { foreignLimits } from "./foreign-limits.ts"

/**
 * A foreign server did not do what it was asked for.
 *
 * **Details** `unmade`: the call did not reach the server. `answered`: the server answered with an error.
 * `unknown`: it was sent, and no answer came.
 */
export class ForeignFault extends Schema.TaggedError<ForeignFault>()("ForeignFault", {
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

const tooLongWords = tooLongText(foreignLimits.messageMaxBytes)

/** What stands in for an answer that is longer than any may be; whoever sent it is heard no further. */
export const tooLong = { code: -32_095, message: tooLongWords } as const

/** A message that did not leave this program. */
export class NeverSent extends Error {}

/** The same fault, told otherwise. */
export const faultLike = (
  { isAborted, isBroken, isForgotten, isOurs, isRepeated, isSignedOut, message, outcome }: ForeignFault,
  changed: Partial<
    Pick<ForeignFault, "outcome" | "message" | "isBroken" | "isOurs" | "isRepeated" | "isSignedOut">
  >
): ForeignFault =>
  new ForeignFault({
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
export const unmade = (message: string): ForeignFault =>
  new ForeignFault({ outcome: "unmade", message, isBroken: true, isOurs: true })

/** Nobody is signed in to the server, as this program itself knows. */
export const signedOut = (message: string): ForeignFault => faultLike(unmade(message), { isSignedOut: true })

/** It was sent, and no answer came in time. */
export const unanswered = (message: string): ForeignFault =>
  new ForeignFault({ outcome: "unknown", message, isBroken: false, isOurs: true })

/** The run aborted it before an answer came. */
export const aborted = (message: string): ForeignFault =>
  new ForeignFault({ outcome: "unknown", message, isBroken: false, isOurs: true, isAborted: true })

/** The server has said no, and may be asked again. */
export const answered = (message: string): ForeignFault =>
  new ForeignFault({ outcome: "answered", message, isBroken: false })

/** One line of an error's text, within its bound. */
export const lineOf = (text: string): string =>
  beginningOf(text.replace(/[\p{Cc}\s]+/gu, " ").trim(), foreignLimits.faultMaxChars).toWellFormed()

/** Reads an error that the SDK, or the network below it, has raised. */
export const toFault = (error: unknown): ForeignFault => {
  const text = lineOf(error instanceof Error ? error.message : String(error))
  // The SDK raises a plain error where its connection is closed before it sends anything.
  if (error instanceof NeverSent || text === "Not connected") return unmade("The connection is closed")
  if (error instanceof ClosedAddress) return unmade(text)
  if (error instanceof ProtocolError)
    return error.code === endedUnanswered.code || error.code === tooLong.code
      ? new ForeignFault({ outcome: "unknown", message: text, isBroken: error.code === tooLong.code })
      : new ForeignFault({ outcome: "answered", message: text, isBroken: false })
  if (error instanceof SdkHttpError) return httpFault(error)
  if (error instanceof SdkError) return sdkFault(error, text)
  const code = Predicate.hasProperty(error, "code") ? String(error.code) : ""
  if (/ConnectionRefused|ECONNREFUSED|ENOTFOUND|ENOENT|EACCES|FailedToOpenSocket/.test(code))
    return unmade(text)
  return new ForeignFault({ outcome: "unknown", message: text, isBroken: true })
}

const sdkFault = ({ code, data }: SdkError, text: string): ForeignFault => {
  if (code === SdkErrorCode.NotConnected) return unmade("The connection is closed")
  if (code === SdkErrorCode.UnsupportedResultType) {
    const type = Predicate.hasProperty(data, "resultType") ? lineOf(String(data.resultType)) : "unknown"
    const message = `The server answered with a result of the type ${beginningOf(type, 50)}, which nobody asked it for and nobody can read`
    return new ForeignFault({ outcome: "unknown", message, isBroken: false })
  }
  const isBroken = code === SdkErrorCode.ConnectionClosed || code === SdkErrorCode.SendFailed
  return new ForeignFault({ outcome: "unknown", message: text, isBroken })
}

/** These say that a request was not taken; after another 4xx nobody would guess that it was not looked at. */
const notTaken: ReadonlySet<number> = new Set([401, 403, 404, 405, 406, 415, 421, 429])

/** A refusal comes before the work, an answer of 5xx may come after it. */
const httpFault = (error: SdkHttpError): ForeignFault => {
  const status = Number(error.status)
  const said =
    Predicate.hasProperty(error.data, "text") && typeof error.data.text === "string" ? error.data.text : ""
  const isRefusal = status === 401 || status === 403
  const message = lineOf(isRefusal && said !== "" ? said : `${error.message} (HTTP ${status})`)
  if (notTaken.has(status) || (status >= 300 && status < 400))
    return new ForeignFault({
      outcome: "unmade",
      message,
      isBroken: true,
      ...(status === 404 ? { isForgotten: true } : {}),
      ...(isRefusal && message.startsWith(signedOutText) ? { isSignedOut: true } : {})
    })
  // Some servers answer 400 where they know a session no more.
  return new ForeignFault({
    outcome: status >= 400 && status < 500 ? "answered" : "unknown",
    message,
    isBroken: status === 400 || status >= 500
  })
}
