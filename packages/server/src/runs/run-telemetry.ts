/**
 * Telemetry for run attempts: spans and metrics.
 *
 * Spans use the names and attributes of OpenTelemetry's GenAI conventions: an attempt is `invoke_agent`, a try of a model request `chat`, a
 * tool call `execute_tool`; the attempt of a sub-run is a child of the tool call that spawned it. Telemetry never influences a run; without
 * an exporter only the metrics are counted.
 */
import { microsPerDollar } from "@tropism/domain/chain"
import { madeCall } from "@tropism/domain/defined-tool"
import type { ToolCall } from "@tropism/domain/message"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { Database } from "../database/database.ts"
import { telemetryLimits } from "../limits.ts"
import type { ModelTry } from "../models/model-request.ts"
import { countModelTry, countToolCall, countUse } from "../telemetry/metrics.ts"
import { Spans, spanIdOf, traceIdOf } from "../telemetry/tracing.ts"
import type { ConnectedTools } from "../tools/offered-tools.ts"
import type { Outcome } from "../tools/toolbox.ts"
import type { Answer } from "./model-answer.ts"
import type { AskedStep } from "./model-calls.ts"
import { Runs } from "./run-store.ts"
import type { ClaimedRun } from "./run-types.ts"

/** The content of a request and of its answer, for spans that may include it. */
export interface Said {
  readonly messages: unknown
  readonly answer: Answer | undefined
}

export const makeRunTelemetry = Effect.gen(function* () {
  const spans = yield* Spans
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const runs = yield* Runs
  const agents = yield* Agents

  const traceOf = ({ ancestors, id }: ClaimedRun) => traceIdOf(ancestors[0] ?? id)
  const attemptOf = ({ attemptToken, id }: ClaimedRun) => spanIdOf("attempt", id, attemptToken)
  const callOf = (runId: string, callId: string) => spanIdOf("call", runId, callId)

  const content = (value: unknown): string | undefined =>
    spans.showContent ? jsonBeginning(value, telemetryLimits.contentMaxChars) : undefined

  /** Returns the span of the tool call that spawned a run. */
  const parentOf = Effect.fnUntraced(function* ({ ancestors, id, projectId }: ClaimedRun) {
    if (ancestors.length === 0) return null
    const [call] = yield* database.ask(
      projectId,
      sql<{ runId: string; callId: string }>`
        select call.run_id, call.call_id from kb.agent_runs run join kb.tool_calls call on call.id = run.spawned_by where run.id = ${id}`
    )
    return call ? callOf(call.runId, call.callId) : null
  })

  const tellAttempt = Effect.fnUntraced(function* (run: ClaimedRun, startMs: number) {
    const endMs = yield* Clock.currentTimeMillis
    const parentId = yield* parentOf(run)
    const record = yield* database.inProject(run.projectId, runs.get(run.id))
    const definition = agents.remembered(run.projectId, run.agentId, run.agentVersion)?.definition
    const name = definition?.name ?? record?.agentName ?? run.agentId
    spans.emit({
      traceId: traceOf(run),
      id: attemptOf(run),
      parentId,
      name: `invoke_agent ${name}`,
      kind: "internal",
      startMs,
      endMs,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": run.agentId,
        "gen_ai.agent.name": name,
        "gen_ai.agent.version": String(run.agentVersion),
        "gen_ai.agent.description": definition?.role,
        "gen_ai.conversation.id": run.contextName,
        "gen_ai.usage.input_tokens": record?.usage.inputTokens,
        "gen_ai.usage.cache_read.input_tokens": record?.usage.cachedInputTokens,
        "gen_ai.usage.cache_creation.input_tokens": record?.usage.cacheWriteTokens,
        "gen_ai.usage.output_tokens": record?.usage.outputTokens,
        "gen_ai.usage.reasoning.output_tokens": record?.usage.reasoningTokens,
        "tropism.project.id": run.projectId,
        "tropism.run.id": run.id,
        "tropism.run.attempt": run.attempt,
        "tropism.run.status": record?.status,
        "tropism.run.trigger": run.trigger.type,
        "tropism.chain.id": run.rootEventId,
        "error.type": record?.status === "failed" ? "failed" : undefined
      },
      error: record?.status === "failed" ? (record.errorMessage ?? "The run failed") : null
    })
  })

  /** Records the span of an attempt when it ends. */
  const attempt = <A, E, R>(run: ClaimedRun, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    spans.isOn
      ? Effect.flatMap(Clock.currentTimeMillis, (startMs) =>
          Effect.ensuring(
            work,
            // Telemetry must not fail a run; other paths detect a lost database.
            Effect.catchCause(tellAttempt(run, startMs), () => Effect.void)
          )
        )
      : work

  const tellTry = (run: ClaimedRun, each: ModelTry, said: Said): void => {
    const { failure, finish, parameters } = each
    spans.emit({
      traceId: traceOf(run),
      id: spanIdOf("chat", run.id, run.attemptToken, each.provider, each.name, each.startedAtMs),
      parentId: attemptOf(run),
      name: `chat ${each.name}`,
      kind: "client",
      startMs: each.startedAtMs,
      endMs: each.startedAtMs + each.durationMs,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": providerNames[each.provider] ?? each.provider,
        "gen_ai.request.model": each.name,
        "gen_ai.request.temperature": parameters.temperature,
        "gen_ai.request.max_tokens": parameters.maxOutputTokens,
        "gen_ai.response.model": finish?.name,
        "gen_ai.response.finish_reasons": finish && [finish.reason],
        "gen_ai.usage.input_tokens": finish?.usage.inputTokens,
        "gen_ai.usage.cache_read.input_tokens": finish?.usage.cachedInputTokens,
        "gen_ai.usage.cache_creation.input_tokens": finish?.usage.cacheWriteTokens,
        "gen_ai.usage.output_tokens": finish?.usage.outputTokens,
        "gen_ai.usage.reasoning.output_tokens": finish?.usage.reasoningTokens,
        "gen_ai.conversation.id": run.contextName,
        "gen_ai.agent.id": run.agentId,
        "gen_ai.input.messages": content(said.messages),
        "gen_ai.output.messages": finish && said.answer && content(outputOf(said.answer)),
        "error.type": failure?.reason
      },
      error: failure && failure.message
    })
  }

  /** Records the tries of a request, and the usage of its answer if there is one. */
  const asked = Effect.fnUntraced(function* ({ run, tries }: AskedStep, said: Said) {
    for (const each of tries) {
      yield* countModelTry(each, each.failure?.reason ?? "answered", each.durationMs)
      if (spans.isOn) tellTry(run, each, said)
    }
    const last = tries.at(-1)
    if (last === undefined || said.answer === undefined) return
    const { costMicros, usage } = said.answer
    yield* countUse(last, { ...usage, costUsd: (costMicros ?? 0) / microsPerDollar })
  })

  const tellCall = (
    run: ClaimedRun,
    call: ToolCall,
    startMs: number,
    endMs: number,
    outcome: Outcome
  ): void => {
    const isFailure = outcome.status !== "completed" && outcome.status !== "started"
    spans.emit({
      traceId: traceOf(run),
      id: callOf(run.id, call.id),
      parentId: attemptOf(run),
      name: `execute_tool ${call.name}`,
      kind: "internal",
      startMs,
      endMs,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": run.contextName,
        "gen_ai.agent.id": run.agentId,
        "gen_ai.tool.call.arguments": content(call.arguments),
        "gen_ai.tool.call.result": content(outcome.result),
        "tropism.tool.status": outcome.status,
        "error.type": isFailure ? outcome.status : undefined
      },
      error: isFailure ? `The call was ${outcome.status}` : null
    })
  }

  /** Records a tool call with its outcome; a call that was not made is not recorded. */
  const toolCall = Effect.fnUntraced(function* <E>(
    run: ClaimedRun,
    { offered }: ConnectedTools,
    asked: ToolCall,
    making: Effect.Effect<Outcome | undefined, E>
  ) {
    const call = madeCall(asked)
    const startMs = yield* Clock.currentTimeMillis
    const outcome = yield* making
    if (outcome === undefined) return undefined
    const endMs = yield* Clock.currentTimeMillis
    const isKnown = offered.some(({ name }) => name === call.name)
    yield* countToolCall(isKnown ? call.name : "unknown", outcome.status, endMs - startMs)
    if (spans.isOn) tellCall(run, call, startMs, endMs, outcome)
    return outcome
  })

  return { attempt, asked, toolCall }
})

/** Returns the first characters of a value's JSON; of a list, only as many items are encoded as are shown. */
const jsonBeginning = (value: unknown, maxChars: number): string | undefined => {
  if (!Array.isArray(value)) {
    const whole = JSON.stringify(value) as string | undefined
    return whole === undefined ? undefined : beginningOf(whole, maxChars)
  }
  let json = "["
  for (const item of value) {
    if (json.length > maxChars) break
    json += `${json === "[" ? "" : ","}${JSON.stringify(item)}`
  }
  return beginningOf(`${json}]`, maxChars)
}

/** The provider names of the conventions; other providers keep their own. */
const providerNames: Readonly<Record<string, string>> = {
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  azure: "azure.ai.openai",
  "amazon-bedrock": "aws.bedrock",
  mistral: "mistral_ai"
}

/** Returns an answer in the form of the conventions. */
const outputOf = ({ text, toolCalls }: Answer) => [
  {
    role: "assistant",
    parts: [
      ...(text === "" ? [] : [{ type: "text", content: text }]),
      ...toolCalls.map(({ arguments: args, id, name }) => ({ type: "tool_call", id, name, arguments: args }))
    ]
  }
]
