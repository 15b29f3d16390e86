/**
 * `tropism tail`: what happens in a project while it happens, until it is interrupted.
 *
 * Graph events come from the live feed, which is gap-free across a cut
 * connection; runs are told as they begin, change and end.
 */
import { LogPlace } from "@tropism/api/page"
import { followGraphEvents } from "@tropism/client/feed"
import type { GraphEvent } from "@tropism/domain/graph"
import type { Run } from "@tropism/domain/run"
import { Effect, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Command, Flag } from "effect/cli"
import { type Access, inProject } from "../access.ts"
import { readAgents } from "../agents-by-name.ts"
import { eventActor, eventChange, eventSubject } from "../event-text.ts"
import { requestFailure } from "../failure.ts"
import { followRuns } from "../follow-runs.ts"
import { makeNotice } from "../notice.ts"
import { onlyPrinting } from "../only-printing.ts"
import { makeSubjects, renderRunLine } from "../run-line.ts"
import { JsonFlag } from "../settings.ts"
import { type Paint, paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { pad } from "../terminal/text.ts"
import { clockTime } from "../terminal/time.ts"
import { whenAnswered } from "../waiting-for-server.ts"

export const tailCommand = Command.make(
  "tail",
  {
    after: Flag.String("after").pipe(
      Flag.withMetavar("<position>"),
      Flag.withDescription("Start after this position in the feed, at the start or now (default: now)"),
      Flag.withSchema(LogPlace),
      Flag.withDefault("now" as const)
    )
  },
  ({ after }) =>
    inProject((access) =>
      Effect.gen(function* () {
        yield* onlyPrinting
        const lines = Stream.merge(yield* eventLines(access, after), yield* runLines(access))
        const screen = yield* Screen
        yield* lines.pipe(Stream.runForEach((line) => screen.print(line)))
      })
    )
).pipe(
  Command.withDescription("Follow graph events and runs live"),
  Command.withExamples([
    { command: "tropism tail", description: "Follow the project" },
    {
      command: "tropism tail --after start --json",
      description: "Print every event from the beginning, one JSON object per line"
    }
  ])
)

const eventLines = (access: Access, after: LogPlace) =>
  Effect.gen(function* () {
    const { paint } = yield* Screen
    const isJson = yield* JsonFlag
    const agents = yield* whenAnswered(readAgents(access))
    const names = new Map(agents.map((agent) => [agent.id as string, agent.name]))
    const say = yield* makeNotice
    const hear = (state: "waiting" | "back") =>
      say(
        state === "waiting"
          ? `The server at ${access.connection.url} does not respond. Reconnecting; no events are lost …`
          : "The server is back. Missed events follow."
      )
    return followGraphEvents(access.connection, access.project.id, {
      after,
      hear
    }).pipe(
      Stream.map(({ data }) =>
        isJson
          ? JSON.stringify({ type: "event", event: data })
          : renderEvent(data, paint, (id) => names.get(id))
      ),
      Stream.mapError((error) => requestFailure(error, access.connection.url)),
      Stream.provide(FetchHttpClient.layer)
    )
  })

const runLines = (access: Access) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const isJson = yield* JsonFlag
    const subjectOf = makeSubjects(access)
    const render = (run: Run) =>
      Effect.gen(function* () {
        if (isJson) return JSON.stringify({ type: "run", run })
        const width = yield* screen.width
        const line = renderRunLine(
          { run, subject: yield* whenAnswered(subjectOf(run)) },
          agentColumns,
          screen.paint,
          width === undefined ? undefined : width - 17
        )
        return `${screen.paint.dim(clockTime(run.completedAt ?? run.startedAt ?? run.createdAt))}  ${pad("run", 5)}  ${line}`
      })
    return followRuns(access).pipe(
      Stream.flatMap((look) => Stream.fromIterable(look.changed)),
      Stream.mapEffect(render)
    )
  })

const agentColumns = 20
const subjectColumns = 48

/** One graph event as a line: when, where in the feed, what, to which object, by whom. */
export const renderEvent = (
  event: GraphEvent,
  paint: Paint,
  nameOf: (agentId: string) => string | undefined
): string => {
  const changed = eventChange(event)
  return [
    paint.dim(clockTime(event.createdAt)),
    pad(event.position === null ? "" : String(event.position), 5, "right"),
    paintState(paint, event.type)(pad(event.type, 7)),
    pad(eventSubject(event, subjectColumns), subjectColumns),
    `by ${eventActor(event, nameOf)}${changed === "" ? "" : paint.dim(`  ${changed}`)}`
  ].join("  ")
}
