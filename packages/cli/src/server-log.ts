/**
 * The server's log as lines on standard error, so that standard output stays the command's own.
 *
 * A line is short: time, level, message, and the request or the run that it is about. The cause is added from level debug
 * on; a person who started a demo is not helped by a stack.
 */
import { Cause, Config, Effect, Layer, Logger, Predicate, References } from "effect"
import { failure } from "./failure.ts"
import { eraseRight, Screen } from "./terminal/screen.ts"
import { printable } from "./terminal/text.ts"
import { clockTime } from "./terminal/time.ts"

const inDetail = new Set(["Debug", "Trace", "All"])

export const lineLogger = Logger.make<unknown, string>(({ date, fiber, logLevel, ...told }) => {
  const { cause, parts } = partsOf(told)
  // What is told of may be anybody's words: a line is one line, and says nothing to the terminal.
  const text = printable(parts.map(asText).join(" "))
  const { requestId, runId } = fiber.getRef(References.CurrentLogAnnotations)
  const about = [...named("request", requestId), ...named("run", runId)].slice(0, 1).join("")
  const head = `${clockTime(date.toISOString())}  ${logLevel.toLowerCase()}  ${text}${about}`
  if (cause.reasons.length === 0) return head
  return inDetail.has(fiber.getRef(References.MinimumLogLevel))
    ? `${head}\n${Cause.pretty(cause)}`
    : `${head}: ${printable(firstLine(asText(Cause.squash(cause))))}`
})

/** One JSON object for each event of the log, with all that it is about: its request, else its run, project and trace. */
export const jsonLogger = Logger.make<unknown, string>(({ date, fiber, logLevel, ...told }) => {
  const { cause, parts } = partsOf(told)
  return JSON.stringify({
    ...Object.assign({}, ...parts.filter(isAbout)),
    ...fiber.getRef(References.CurrentLogAnnotations),
    time: date.toISOString(),
    level: logLevel.toLowerCase(),
    message: parts
      .filter((part) => !isAbout(part))
      .map(asText)
      .join(" "),
    ...(cause.reasons.length === 0
      ? {}
      : {
          cause: inDetail.has(fiber.getRef(References.MinimumLogLevel))
            ? Cause.pretty(cause)
            : firstLine(asText(Cause.squash(cause)))
        })
  })
})

/** The parts of a message; an error behind its first words is what it tells of as its cause. */
const partsOf = ({ cause, message }: Pick<Logger.Options<unknown>, "cause" | "message">) => {
  const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
  const error = parts.slice(1).find((part) => part instanceof Error)
  return cause.reasons.length > 0 || error === undefined
    ? { cause, parts }
    : { cause: Cause.die(error), parts: parts.filter((part) => part !== error) }
}

const named = (what: string, id: unknown): ReadonlyArray<string> =>
  id === undefined ? [] : [` (${what} ${String(id)})`]

/** Whether a part of a message names what it is about, and is no word of it. */
const isAbout = (part: unknown): part is object =>
  Predicate.isObject(part) && !(part instanceof Error) && !Cause.isCause(part) && !Array.isArray(part)

/** Over the redrawn line of a terminal, if there is one: its next drawing is below. */
const textLines = Logger.layer([
  Effect.map(Screen, ({ isLive }) =>
    Logger.withConsoleError(Logger.map(lineLogger, (line) => (isLive ? `\r${line}${eraseRight}` : line)))
  )
])

/** The log in the form that `TROPISM_LOG` names. */
export const serverLogLines = Layer.unwrap(
  Effect.gen(function* () {
    const form = yield* Config.String("TROPISM_LOG").pipe(
      Config.withDefault(""),
      Effect.mapError(() => failure("TROPISM_LOG cannot be read."))
    )
    if (form === "json") return Logger.layer([Logger.withConsoleError(jsonLogger)])
    if (form === "" || form === "text") return textLines
    return yield* failure(`TROPISM_LOG must be text or json, not "${form}".`)
  })
)

const asText = (value: unknown): string => {
  if (typeof value === "string") return value
  if (Cause.isCause(value)) return firstLine(asText(Cause.squash(value)))
  if (value instanceof Error) return messageOf(value)
  if (!Predicate.isObject(value)) return JSON.stringify(value) ?? ""
  return Object.entries(value)
    .map(([name, item]) => `${name}=${asText(item)}`)
    .join(" ")
}

/** An error's message and, behind it, what it says of its cause: the database's own words, and not only that a query failed. */
const messageOf = ({ message, cause }: Error, depth = 1): string => {
  const why = cause instanceof Error && depth < 8 ? messageOf(cause, depth + 1) : ""
  return why === "" || message.includes(why) ? message : why.includes(message) ? why : `${message}: ${why}`
}

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? ""
