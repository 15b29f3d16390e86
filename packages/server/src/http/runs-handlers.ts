/**
 * Runs: read them, watch them live, stop them.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Conflict } from "@tropism/api/problems"
import type { ToolCallRecord } from "@tropism/api/runs-api"
import type { ContextName } from "@tropism/domain/context-event"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Descendants } from "../run/descendants.ts"
import { Endings } from "../run/endings.ts"
import { Runs } from "../run/runs.ts"
import { type RecordedCall, ToolCalls } from "../tool/tool-calls.ts"
import { inProject, reading } from "./access.ts"
import { liveLog, logPage } from "./context-log.ts"
import { pageById } from "./paging.ts"
import { orNotFound } from "./refusals.ts"
import { startAfter, wantsStream } from "./sse.ts"

const knownRun = orNotFound("run")

/** A call as the API shows it: what it read is evidence, not part of the answer. */
const shownCall = ({ reads: _reads, ...call }: RecordedCall): ToolCallRecord => call

export const runsHandlers = HttpApiBuilder.group(Api, "runs", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.runs.list")(function* ({ params, query }) {
        const runs = yield* Runs
        const { cursor: _cursor, limit: _limit, ...filter } = query
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => runs.list(filter, before, limit))
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.runs.get")(function* ({ params }) {
        const runs = yield* Runs
        return yield* knownRun(reading(params.projectId, runs.get(params.runId)))
      })
    )
    .handleRaw(
      "events",
      Effect.fn("http.runs.events")(function* ({ params, query }) {
        const runs = yield* Runs
        const run = yield* knownRun(reading(params.projectId, runs.get(params.runId)))
        const name = run.contextName as ContextName
        if (yield* wantsStream)
          return yield* liveLog(params.projectId, name, yield* startAfter(query.after), run.id)
        return yield* Effect.orDie(
          HttpServerResponse.json(yield* reading(params.projectId, logPage(name, query)))
        )
      })
    )
    .handle(
      "toolCalls",
      Effect.fn("http.runs.toolCalls")(function* ({ params, query }) {
        const runs = yield* Runs
        const toolCalls = yield* ToolCalls
        return yield* reading(
          params.projectId,
          Effect.andThen(
            knownRun(runs.get(params.runId)),
            Effect.map(
              pageById(query, (before, limit) => toolCalls.list(params.runId, before, limit)),
              (page) => ({
                ...page,
                items: page.items.map(shownCall)
              })
            )
          )
        )
      })
    )
    .handle(
      "cancel",
      Effect.fn("http.runs.cancel")(function* ({ params }) {
        const runs = yield* Runs
        const endings = yield* Endings
        const descendants = yield* Descendants
        const cancelled = yield* inProject(params.projectId, "editor", () =>
          Effect.gen(function* () {
            const run = yield* knownRun(runs.get(params.runId))
            // Read again: it ended after it was read, or before.
            yield* Effect.catchTag(endings.cancel(run), "RunNotInState", () =>
              Effect.flatMap(knownRun(runs.get(run.id)), ({ status }) =>
                Effect.fail(new Conflict({ reason: "state", detail: `The run is ${status} already` }))
              )
            )
            return yield* knownRun(runs.get(run.id))
          })
        )
        // When the answer is there, nothing below the run writes any more.
        yield* descendants.cancelBelow(params.projectId, cancelled.id)
        return cancelled
      })
    )
)
