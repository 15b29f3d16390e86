/**
 * When a server that refused a request wants to be asked again.
 *
 * Three ways of saying it: `retry-after-ms`, `Retry-After` in seconds or as a
 * date, and Google's `RetryInfo` in the body of the refusal. Whether that is
 * waited for is decided in `retry.ts`.
 */
import type { APICallError } from "@ai-sdk/provider"
import { Duration, Option, Schema } from "effect"

/** The pause that a refusal asks for, seen from an instant in milliseconds. */
export const retryAfterOf = (
  { responseBody, responseHeaders }: Pick<APICallError, "responseBody" | "responseHeaders">,
  nowMs: number
): Duration.Duration | undefined => inHeaders(responseHeaders ?? {}, nowMs) ?? inBody(responseBody)

const inHeaders = (headers: Record<string, string>, nowMs: number): Duration.Duration | undefined => {
  const header = (name: string) => Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  const milliseconds = Number(header("retry-after-ms") ?? Number.NaN)
  if (Number.isFinite(milliseconds)) return pauseOf(milliseconds)
  const after = header("retry-after")
  if (after === undefined) return undefined
  const seconds = Number(after)
  return pauseOf(Number.isFinite(seconds) ? seconds * 1000 : Date.parse(after) - nowMs)
}

const RetryInfo = Schema.fromJsonString(
  Schema.Struct({
    error: Schema.Struct({
      details: Schema.Array(Schema.Struct({ retryDelay: Schema.optionalKey(Schema.String) }))
    })
  })
)
const decodeRetryInfo = Schema.decodeUnknownOption(RetryInfo)

/** A protobuf duration, as in `34.4s`. */
const inBody = (body: string | undefined): Duration.Duration | undefined => {
  const details = Option.match(decodeRetryInfo(body), {
    onNone: () => [],
    onSome: ({ error }) => error.details
  })
  const delay = details.find(({ retryDelay }) => retryDelay !== undefined)?.retryDelay
  return delay?.endsWith("s") ? pauseOf(Number(delay.slice(0, -1)) * 1000) : undefined
}

const pauseOf = (milliseconds: number): Duration.Duration | undefined =>
  Number.isFinite(milliseconds) ? Duration.millis(Math.max(0, milliseconds)) : undefined
