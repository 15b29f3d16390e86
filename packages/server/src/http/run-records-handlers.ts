/**
 * A run looked at closely: its steps, and what each model was shown and answered.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ProjectTransaction } from "../database/database.ts"
import { ModelCallReading } from "../run/model-call-reading.ts"
import { OpenRequestReading } from "../run/open-request-reading.ts"
import { RunObjectReading } from "../run/run-objects.ts"
import { StepReading } from "../run/step-reading.ts"
import { reading } from "./access.ts"
import { readableRun } from "./owned.ts"
import { pageByNumber } from "./paging.ts"
import { orNotFound } from "./refusals.ts"

interface RunPath {
  readonly projectId: ProjectId
  readonly runId: RunId
}

/** Reads something of a run that is there. */
const ofRun = <A, E, R>({ projectId, runId }: RunPath, read: Effect.Effect<A, E, R>) =>
  reading(projectId, Effect.andThen(readableRun(runId), read))

/** A page of what is numbered in a run. */
const pageOf = <A extends { readonly number: number }>(
  params: RunPath,
  query: Parameters<typeof pageByNumber>[0],
  list: (
    runId: RunId,
    after: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<A>, never, ProjectTransaction>
) =>
  ofRun(
    params,
    pageByNumber(
      query,
      ({ number }: A) => number,
      (after, limit) => list(params.runId, after ?? 0, limit)
    )
  )

export const runRecordsHandlers = HttpApiBuilder.group(Api, "runRecords", (handlers) =>
  handlers.handleAll({
    steps: Effect.fn("http.runRecords.steps")(function* ({ params, query }) {
      const steps = yield* StepReading
      return yield* pageOf(params, query, steps.list)
    }),
    objects: Effect.fn("http.runRecords.objects")(function* ({ params }) {
      const objects = yield* RunObjectReading
      return yield* ofRun(params, objects.of(params.runId))
    }),
    modelCalls: Effect.fn("http.runRecords.modelCalls")(function* ({ params, query }) {
      const calls = yield* ModelCallReading
      return yield* pageOf(params, query, calls.list)
    }),
    openRequest: Effect.fn("http.runRecords.openRequest")(function* ({ params }) {
      const requests = yield* OpenRequestReading
      const request = yield* ofRun(params, requests.of(params.runId))
      return { request: request ?? null }
    }),
    modelCall: Effect.fn("http.runRecords.modelCall")(function* ({ params }) {
      const calls = yield* ModelCallReading
      return yield* orNotFound("model call")(ofRun(params, calls.exchange(params.runId, params.number)))
    })
  })
)
