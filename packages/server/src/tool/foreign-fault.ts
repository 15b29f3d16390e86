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
import { Predicate, Schema } from "effect"
import { ClosedAddress } from "../agent/outside-network.ts"
import { foreignLimits } from "../limits.ts"

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
  isBroken: Schema.Boolean
}) {}

/** A message that did not leave this program. */
export class NeverSent extends Error {}

export const unmade = (message: string): ForeignFault =>
  new ForeignFault({ outcome: "unmade", message, isBroken: true })

/** One line of an error's text, within its bound. */
export const lineOf = (text: string): string =>
  text
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, foreignLimits.faultMaxChars)
    .toWellFormed()

/** Reads an error that the SDK, or the network below it, has raised. */
export const toFault = (error: unknown): ForeignFault => {
  const text = lineOf(error instanceof Error ? error.message : String(error))
  // The SDK raises a plain error where its connection is closed before it sends anything.
  if (error instanceof NeverSent || text === "Not connected") return unmade("The connection is closed")
  if (error instanceof ClosedAddress) return unmade(text)
  if (error instanceof ProtocolError)
    return new ForeignFault({ outcome: "answered", message: text, isBroken: false })
  if (error instanceof SdkHttpError) return httpFault(Number(error.status), text)
  if (error instanceof SdkError) {
    const { code } = error
    if (code === SdkErrorCode.NotConnected) return unmade("The connection is closed")
    if (code === SdkErrorCode.InputRequiredRoundsExceeded || code === SdkErrorCode.UnsupportedResultType)
      return new ForeignFault({
        outcome: "answered",
        message: "The server asks for a person's input in the middle of the call, which no run can give",
        isBroken: false
      })
    const isBroken = code === SdkErrorCode.ConnectionClosed || code === SdkErrorCode.SendFailed
    return new ForeignFault({ outcome: "unknown", message: text, isBroken })
  }
  const code = Predicate.hasProperty(error, "code") ? String(error.code) : ""
  if (/ConnectionRefused|ECONNREFUSED|ENOTFOUND|ENOENT|EACCES|FailedToOpenSocket/.test(code))
    return unmade(text)
  return new ForeignFault({ outcome: "unknown", message: text, isBroken: true })
}

/** A refusal comes before the work, an answer of 5xx may come after it. */
const httpFault = (status: number, text: string): ForeignFault =>
  new ForeignFault({
    outcome: status >= 400 && status < 500 ? "answered" : "unknown",
    message: text,
    isBroken: status === 404 || status === 401 || status >= 500
  })
