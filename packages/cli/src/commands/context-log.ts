/**
 * `tropism contexts log` and `tail`: what stands in a context's log, and what is written while one looks.
 */
import { LogPlace } from "@tropism/api/page"
import { ContextName, eventNumber, LoggedEvent } from "@tropism/domain/context-event"
import { Effect, Schema, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inProject, readPages } from "../access.ts"
import { followContext } from "../context-feed.ts"
import { contextEventName, contextEventText } from "../event-text.ts"
import { onlyPrinting } from "../only-printing.ts"
import { printOr } from "../print-records.ts"
import { JsonFlag } from "../settings.ts"
import { Screen } from "../terminal/screen.ts"
import { type Column, renderTable } from "../terminal/table.ts"
import { pad } from "../terminal/text.ts"
import { clockTime } from "../terminal/time.ts"

export const contextArgument = Argument.String("context").pipe(
  Argument.withDescription("A context's name"),
  Argument.withSchema(ContextName)
)

/** Where somebody begins to read. */
const afterFlag = (standard: "start" | "now") =>
  Flag.String("after").pipe(
    Flag.withMetavar("<event>"),
    Flag.withDescription(`Start after this event, at the start or now (default: ${standard})`),
    Flag.withSchema(LogPlace),
    Flag.withDefault(standard)
  )

/** The events as they are on the wire. */
export const encodeLog = Schema.encodeSync(Schema.Array(LoggedEvent))

export const logCommand = Command.make(
  "log",
  { context: contextArgument, after: afterFlag("start") },
  ({ after, context: name }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const { items } = yield* readPages(
          (query) =>
            access.client.contexts.events({ params: { ...access.params, name }, query: { after, ...query } }),
          Infinity
        )
        const options = { paint: screen.paint, width: yield* screen.width }
        yield* printOr(
          encodeLog(items),
          items.length === 0
            ? screen.print("Event not found in the log.")
            : screen.print(...renderTable(items, logColumns(screen.paint.dim), options))
        )
      })
    )
).pipe(Command.withDescription("Print a context's log"))

/** The columns of a log. */
export const logColumns = (dim: (text: string) => string): ReadonlyArray<Column<LoggedEvent>> => [
  { title: "NO", align: "right", cell: ({ id }) => String(eventNumber(id)), paint: () => dim },
  { title: "TIME", cell: ({ timestamp }) => clockTime(timestamp), paint: () => dim },
  { title: "EVENT", cell: ({ type }) => contextEventName(type) },
  { title: "WHAT", shrinks: "end", cell: contextEventText }
]

export const tailCommand = Command.make(
  "tail",
  {
    context: contextArgument,
    after: afterFlag("now"),
    deltas: Flag.Boolean("deltas").pipe(
      Flag.withDescription("Also show text deltas while a reply is written"),
      Flag.withDefault(false)
    )
  },
  ({ after, context: name, deltas }) =>
    inProject((access) =>
      Effect.gen(function* () {
        yield* onlyPrinting
        const screen = yield* Screen
        const isJson = yield* JsonFlag
        const dim = screen.paint.dim
        yield* followContext(access, name, after).pipe(
          Stream.filter(({ number }) => deltas || number !== undefined),
          Stream.runForEach(({ event, json, number }) =>
            screen.print(
              isJson
                ? JSON.stringify(json)
                : [
                    dim(clockTime(event.timestamp)),
                    pad(number === undefined ? "" : String(number), 5, "right"),
                    pad(contextEventName(event.type), 20),
                    contextEventText(event)
                  ]
                    .join("  ")
                    .trimEnd()
            )
          )
        )
      })
    )
).pipe(
  Command.withDescription("Follow a context's log"),
  Command.withExamples([
    { command: "tropism contexts tail talk --json --deltas", description: "One JSON object per line, live" },
    { command: "tropism contexts tail talk --after start", description: "Print the whole log first" }
  ])
)
