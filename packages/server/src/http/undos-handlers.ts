/**
 * Undo: a person has a run, an agent's version or a chain taken back.
 *
 * Flow: **http** → task → graph
 */
import { Api } from "@tropism/api/api"
import type { ProjectId } from "@tropism/domain/ids"
import type { UndoCause, UndoItem } from "@tropism/domain/undo"
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Undos } from "../task/undos.ts"
import { inProject, reading } from "./access.ts"
import { pageByNumber } from "./paging.ts"
import { orNotFound, undoProblem } from "./refusals.ts"

/** Plans the undo of a cause: 201, or 200 with the plan that waits already, as the graph is now. */
const plan = Effect.fnUntraced(function* (projectId: ProjectId, what: string, cause: UndoCause) {
  const undos = yield* Undos
  const { isNew, task } = yield* orNotFound(what)(
    inProject(projectId, "reviewer", ({ userId }) => Effect.mapError(undos.plan(cause, userId), undoProblem))
  )
  if (!isNew)
    yield* HttpEffect.appendPreResponseHandler((_request, response) =>
      Effect.succeed(HttpServerResponse.setStatus(response, 200))
    )
  return task
})

export const undosHandlers = HttpApiBuilder.group(Api, "undos", (handlers) =>
  handlers.handleAll({
    undoRun: Effect.fn("http.undos.undoRun")(({ params }) =>
      plan(params.projectId, "run", { type: "run", runId: params.runId })
    ),
    undoAgent: Effect.fn("http.undos.undoAgent")(({ params, payload }) =>
      plan(params.projectId, "version of an agent", {
        type: "agentVersion",
        agentId: params.agentId,
        version: payload.version
      })
    ),
    undoChain: Effect.fn("http.undos.undoChain")(({ params }) =>
      plan(params.projectId, "chain", { type: "chain", rootEventId: params.rootEventId })
    ),
    items: Effect.fn("http.undos.items")(function* ({ params, query }) {
      const undos = yield* Undos
      return yield* reading(
        params.projectId,
        pageByNumber(
          query,
          ({ place }: UndoItem) => place,
          (after, limit) => orNotFound("undo")(undos.items(params.taskId, after, limit))
        )
      )
    })
  })
)
