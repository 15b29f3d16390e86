/**
 * Reads what models were asked, and makes the exact request again from the log.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The reducer is pure and the log is never changed, so the fold up to the event
 * that a call names is the context that the model was shown, word for word.
 */
import { promptOf } from "@tropism/domain/context"
import { fitPrompt } from "@tropism/domain/prompt-fit"
import { findUnjudged } from "@tropism/domain/guard"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import type { ModelCall, ModelExchange } from "@tropism/domain/model-call"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Contexts } from "../agent/contexts.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { toolTokens } from "../model/window.ts"
import { makeFlowSteps } from "./flow-steps-at-work.ts"
import { guardMessages } from "./guard-prompt.ts"
import { type ModelCallRow, toModelCall } from "./model-call-rows.ts"
import { notesRequest } from "./notes-prompt.ts"
import { findSummary } from "./summary-prompt.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class ModelCallReading extends Context.Service<
  ModelCallReading,
  {
    /** The calls of a run behind a number, in the order in which they were made. */
    readonly list: (runId: RunId, after: number, limit: number) => Read<ReadonlyArray<ModelCall>>
    /** One call with what the model was shown and what it answered. */
    readonly exchange: (runId: RunId, number: number) => Read<ModelExchange | undefined>
  }
>()("@tropism/server/run/ModelCallReading") {
  static readonly layer = Layer.effect(
    ModelCallReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const contexts = yield* Contexts
      const flowSteps = makeFlowSteps(sql)

      const rows = (projectId: ProjectId, runId: RunId, after: number, limit: number) =>
        sql<ModelCallRow>`
          select * from kb.model_calls where project_id = ${projectId} and run_id = ${runId} and number > ${after}
          order by number limit ${limit}`

      const list = Effect.fn("ModelCallReading.list")(function* (runId: RunId, after: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const calls = yield* rows(projectId, runId, after, limit)
        const flowStep = yield* flowSteps(projectId, runId, calls)
        return calls.map((row) => toModelCall(row, flowStep(row.afterEvent)))
      }, orDie)

      /** What the log up to an event folds to, as it was shown: to be answered, to be judged, or to be told in short. */
      const messagesOf = Effect.fnUntraced(function* ({ afterEvent, contextName, purpose }: ModelCallRow) {
        const context = yield* contexts.loadUpTo(contextName, afterEvent)
        switch (purpose) {
          case "step":
            return promptOf(context)
          case "guard":
            return guardMessages(context, findUnjudged(context))
          case "summary":
            return findSummary(context)?.messages ?? []
          case "notes":
            return notesRequest(context)
        }
      })

      const toolsOf = Effect.fnUntraced(function* (projectId: ProjectId, digest: string | null) {
        if (digest === null) return []
        const [row] = yield* sql<{ tools: ModelExchange["request"]["tools"] }>`
          select tools from kb.tool_lists where project_id = ${projectId} and digest = ${digest}`
        return row?.tools ?? []
      })

      const responseOf = Effect.fnUntraced(function* ({ answerEvent, contextName }: ModelCallRow) {
        if (answerEvent === null) return null
        const [event] = yield* contexts.read(contextName, answerEvent - 1, 1)
        return event === undefined
          ? null
          : { text: String(event["content"] ?? ""), toolCalls: decodeCalls(event["toolCalls"] ?? []) }
      })

      const exchange = Effect.fn("ModelCallReading.exchange")(function* (runId: RunId, number: number) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* rows(projectId, runId, number - 1, 1)
        if (row?.number !== number) return undefined
        const tools = yield* toolsOf(projectId, row.toolsDigest)
        const whole = yield* messagesOf(row)
        const { leftOut } = row.parameters
        // Fitted as it was before it was sent: the same number leaves out the same.
        const messages = decodeMessages(
          leftOut === undefined ? whole : fitPrompt(whole, toolTokens(tools), leftOut.maxTokens).messages
        )
        const flowStep = yield* flowSteps(projectId, runId, [row])
        const exchanged: ModelExchange = {
          ...toModelCall(row, flowStep(row.afterEvent)),
          request: { messages, tools, parameters: row.parameters },
          response: yield* responseOf(row)
        }
        return exchanged
      }, orDie)

      return ModelCallReading.of({ list, exchange })
    })
  )
}

const decodeMessages = Schema.decodeUnknownSync(Schema.Array(Schema.Json))
const decodeCalls = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String, arguments: Schema.Json }))
)
