/**
 * Makes the request again that a model is asked now, or was asked when its run was ended from outside.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Nothing of it is kept before it is over: the log up to where the run stands
 * folds to exactly its messages, and the decider says whether there is one. So
 * a cancel, or a server that died, loses nothing, and a step costs nothing more.
 */
import { promptOf, type ReducedContext } from "@tropism/domain/context"
import type { ContextName } from "@tropism/domain/context-event"
import { decide } from "@tropism/domain/decide"
import type { AgentId, ProjectId, RunId } from "@tropism/domain/ids"
import type { OpenRequest } from "@tropism/domain/model-call"
import type { RunStatus, Trigger } from "@tropism/domain/run"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agent/agents.ts"
import { Contexts } from "../agent/contexts.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { charsOf, tokensOf } from "../model/estimated-usage.ts"
import { Models } from "../model/models.ts"
import { stepsOf } from "./step-count.ts"

/** A run as far as it says where in which log it stands. */
interface Standing {
  readonly id: RunId
  readonly status: RunStatus
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly contextName: ContextName
  readonly isConversation: boolean
  readonly partialText: string | null
  readonly createdAt: Date
  /** The last event that a recorded call of the run has to do with; 0 without one. */
  readonly lastEvent: number
}

/** Where a run stands in its log, and what it had said there. */
interface Standpoint {
  readonly context: ReducedContext
  readonly said: string
}

export class OpenRequestReading extends Context.Service<
  OpenRequestReading,
  {
    /** The request of a run that nobody has answered; undefined where there is none. */
    readonly of: (runId: RunId) => Effect.Effect<OpenRequest | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/run/OpenRequestReading") {
  static readonly layer = Layer.effect(
    OpenRequestReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const contexts = yield* Contexts
      const agents = yield* Agents
      const models = yield* Models

      const standing = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const [run] = yield* sql<Standing>`
          select id, status, agent_id, agent_version, context_name, trigger_type = ${conversation} as is_conversation, partial_text, created_at,
            coalesce((select max(coalesce(answer_event, after_event)) from kb.model_calls where run_id = run.id), 0) as last_event
          from kb.agent_runs run where id = ${runId} and project_id = ${projectId}`
        return run
      })

      /** The state in which a run was broken off from outside; undefined where it was not. */
      const brokenOff = Effect.fnUntraced(function* (run: Standing) {
        const { projectId } = yield* ProjectTransaction
        const [end] = yield* sql<{
          readonly number: number
          readonly said: string
          readonly endsCalls: boolean
        }>`
          select turn.number, coalesce(turn.payload ->> 'partialText', '') as said,
            coalesce(before.type = 'ToolCallFailedEvent' and before.created_at = turn.created_at, false) as ends_calls
          from kb.context_events turn
          left join kb.context_events before
            on before.project_id = turn.project_id and before.context_name = turn.context_name and before.number = turn.number - 1
          where turn.project_id = ${projectId} and turn.context_name = ${run.contextName} and turn.number > ${run.lastEvent}
            and turn.type = 'AgentTurnInterruptedEvent' and turn.payload ->> 'reason' in ('cancelled', 'crash')
            and (${!run.isConversation} or turn.created_at >= ${run.createdAt})
          order by case when ${run.isConversation} then turn.number else -turn.number end limit 1`
        // Calls that were to be made, or were, got their outcome with the end: no model was asked then.
        if (end === undefined || end.endsCalls) return undefined
        const context = yield* contexts.loadUpTo(run.contextName, end.number - 1)
        return { context, said: end.said }
      })

      const standpoint = (
        run: Standing
      ): Effect.Effect<Standpoint | undefined, never, ProjectTransaction> => {
        if (run.status === "running")
          return Effect.map(contexts.load(run.contextName), (context) => ({
            context,
            said: run.partialText ?? ""
          }))
        return run.status === "cancelled" || run.status === "failed"
          ? orDie(brokenOff(run))
          : Effect.succeed(undefined)
      }

      /** Whether a request to a model is what comes next, and its tries are not on record. */
      const isAsking = Effect.fnUntraced(function* (run: Standing, context: ReducedContext) {
        const { projectId } = yield* ProjectTransaction
        const next = decide({
          context,
          runId: run.id,
          ownTurnNumber: context.currentTurnNumber,
          maxSteps: null,
          mayRepeat: () => true
        })
        if (next.type !== "requestModel") return undefined
        const kept = yield* sql`
          select 1 from kb.model_calls where project_id = ${projectId} and run_id = ${run.id} and purpose = 'step'
            and after_event = ${context.nextEventNumber - 1} limit 1`
        return kept.length === 0 ? next : undefined
      })

      /** Whom it is asked of, and what that costs; undefined where no model can be asked here any more. */
      const modelOf = Effect.fnUntraced(function* (run: Standing, context: ReducedContext) {
        const found = yield* agents.version(run.agentId, run.agentVersion)
        if (found === undefined) return undefined
        const { definition } = found
        const name = Option.getOrUndefined(context.flow)?.step
        const step = definition.steps.find((each) => each.name === name)
        return yield* Effect.option(
          models.resolve({
            agentName: definition.name,
            model: step?.model ?? definition.model,
            settings: step?.model ? { ...context.config, primary: Option.none() } : context.config
          })
        ).pipe(Effect.map(Option.getOrUndefined))
      })

      /** The tools of the run's newest request on record: those of a first one are known only to who asks. */
      const toolsOf = Effect.fnUntraced(function* (projectId: ProjectId, runId: RunId) {
        const [row] = yield* sql<{ readonly tools: OpenRequest["tools"] }>`
          select coalesce(list.tools, '[]') as tools from kb.model_calls call
          left join kb.tool_lists list on list.project_id = call.project_id and list.digest = call.tools_digest
          where call.project_id = ${projectId} and call.run_id = ${runId} and call.purpose = 'step' order by call.number desc limit 1`
        return row?.tools ?? null
      })

      const of = Effect.fn("OpenRequestReading.of")(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const run = yield* standing(runId)
        const stands = run && (yield* standpoint(run))
        if (!stands) return undefined
        const { context, said } = stands
        const asking = yield* isAsking(run, context)
        if (!asking) return undefined
        const messages = promptOf(context)
        const tools = yield* toolsOf(projectId, runId)
        const model = yield* modelOf(run, context)
        const request: OpenRequest = {
          isUnderWay: run.status === "running",
          step: stepsOf(run, context) + 1,
          afterEvent: context.nextEventNumber - 1,
          model: model ? `${model.provider}:${model.name}` : null,
          price: model?.price ?? null,
          messages: decodeMessages(messages),
          tools,
          toolChoice: asking.withTools ? "auto" : "none",
          estimatedInputTokens: tokensOf(charsOf({ messages, tools: [] })),
          said
        }
        return request
      }, orDie)

      return OpenRequestReading.of({ of })
    })
  )
}

const conversation: Trigger["type"] = "context"

const decodeMessages = Schema.decodeUnknownSync(Schema.Array(Schema.Json))
