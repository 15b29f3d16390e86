/**
 * Records every try of a model request: its input, its cost and its outcome.
 *
 * Messages are not copied: the log up to `after_event` folds to exactly the messages of the request, and each tool list is stored once, so
 * a record is small however long the conversation is. The tries of an answer are written with the append that stores it; tries without an
 * answer are a separate statement, fenced by the attempt's token.
 */
import { createHash } from "node:crypto"
import { microsPerDollar } from "@tropism/domain/chain"
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId } from "@tropism/domain/ids"
import type { ModelCallPurpose, FlowStepAtWork, ModelCall, ModelExchange } from "@tropism/domain/model-call"
import { usageDetails } from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ModelTry, OfferedTool } from "../models/model-request.ts"
import { retryDuringOutages } from "../outbox/outages.ts"
import { recordingRequests, type RunParts } from "./appends.ts"
import { makeFencing } from "./fencing.ts"
import type { ClaimedRun } from "./run-types.ts"

/** A request of a step, with its tries so far. */
export interface AskedStep {
  readonly run: ClaimedRun
  /** Absent for a step. */
  readonly purpose?: ModelCallPurpose
  /** From 1 in each run; a request outside the steps has the number of the step that follows it. */
  readonly step: number
  /** The last event that the request includes. */
  readonly afterEvent: number
  readonly tools: ReadonlyArray<OfferedTool>
  readonly tries: ReadonlyArray<ModelTry>
}

/** How many events are appended after the stored answer. */
export interface KeptAnswer {
  readonly eventsBehind: number
}

/** A request and its stored answer. */
export interface KeptRequest {
  readonly asked: AskedStep
  readonly answer: KeptAnswer | undefined
}

export class ModelCalls extends Context.Service<
  ModelCalls,
  {
    /** Returns the parts of an append that record a request with its answer, if stored, and a second request made in parallel. */
    readonly recording: (
      asked: AskedStep,
      answer: KeptAnswer | undefined,
      beside?: KeptRequest
    ) => Pick<RunParts, "requests" | "lists">
    /** Confirms that the records from `recording` are committed, so their tool list need not be sent again. */
    readonly recorded: (asked: AskedStep) => void
    /** Records a request without an answer, if the attempt still holds its run. */
    readonly keepUnanswered: (asked: AskedStep) => Effect.Effect<void>
  }
>()("@tropism/server/run/ModelCalls") {
  static readonly layer = Layer.effect(
    ModelCalls,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const { guard } = yield* makeFencing
      const listed = makeListed()

      const listsOf = ({ run, tools }: AskedStep) => {
        const { digest } = fingerprintOf(tools)
        return digest === null || listed.has(run.projectId, digest) ? [] : [{ digest, tools }]
      }

      const recording = (
        asked: AskedStep,
        answer: KeptAnswer | undefined,
        beside?: KeptRequest
      ): Pick<RunParts, "requests" | "lists"> => {
        const lists = listsOf(asked)
        return {
          requests: [...(beside ? [beside] : []), { asked, answer }]
            .flatMap(triesOf)
            .map((row, index) => Object.assign(row, { ordinal: index + 1 })),
          ...(lists.length === 0 ? {} : { lists })
        }
      }

      const recorded = ({ run, tools }: AskedStep): void => {
        const { digest } = fingerprintOf(tools)
        if (digest !== null) listed.add(run.projectId, digest)
      }

      /** An earlier try of the same statement may commit while this one waits for the run's lock. */
      const unlessKept = sql`on conflict (run_id, number) do nothing`

      const keepUnanswered = Effect.fn("ModelCalls.keepUnanswered")(function* (asked: AskedStep) {
        if (asked.tries.length === 0) return
        const { run } = asked
        const { lists = [], requests } = recording(asked, undefined)
        const begunAt = new Date(asked.tries[0]?.startedAtMs ?? 0)
        // An earlier try may have committed although its connection failed.
        const isNew = sql`not exists (select from kb.model_calls where run_id = ${run.id} and purpose = ${asked.purpose ?? "step"} and started_at = ${begunAt})`
        const [kept] = yield* retryDuringOutages(
          database.ask(
            run.projectId,
            sql`with guard as (${guard(run)}), appended as (
                select ${run.projectId}::uuid as project_id, ${run.id}::uuid as run, ${run.agentId}::uuid as agent, ${run.contextName}::text as name,
                  ${asked.afterEvent}::int as last_event_number, ${JSON.stringify(requests)}::text::jsonb as requests
                from guard where ${isNew}
              ), listed as (
                insert into kb.tool_lists (project_id, digest, tools)
                select appended.project_id, list.digest, list.tools
                from appended, jsonb_to_recordset(${JSON.stringify(lists)}::text::jsonb) as list(digest text, tools jsonb) on conflict do nothing
              ), ${recordingRequests(sql, unlessKept)}
              select last_event_number from appended`
          )
        )
        if (kept) recorded(asked)
      })

      return ModelCalls.of({
        recording,
        recorded,
        keepUnanswered
      })
    })
  )
}

/** Returns the rows of a request's tries; the answer belongs to the last. */
const triesOf = ({ answer, asked: { afterEvent, purpose = "step", step, tools, tries } }: KeptRequest) =>
  tries.map((each, index) => {
    const kept = index === tries.length - 1 ? answer : undefined
    return {
      purpose,
      step,
      try: index + 1,
      provider: each.provider,
      model: each.name,
      after: afterEvent,
      digest: fingerprintOf(tools).digest,
      parameters: each.parameters,
      behind: kept?.eventsBehind ?? null,
      finish: each.finish?.reason ?? null,
      error:
        each.failure &&
        beginningOf(`${each.failure.reason}: ${each.failure.message}`, runLimits.errorMaxChars),
      input: each.finish?.usage.inputTokens ?? 0,
      output: each.finish?.usage.outputTokens ?? 0,
      cached: each.finish?.usage.cachedInputTokens ?? 0,
      written: each.finish?.usage.cacheWriteTokens ?? 0,
      thought: each.finish?.usage.reasoningTokens ?? 0,
      estimated: each.finish?.isUsageEstimated ?? false,
      cost: each.finish?.costMicros ?? null,
      cached_cost: each.finish?.cachedCostMicros ?? null,
      started: new Date(each.startedAtMs).toISOString(),
      first: each.firstOutputMs,
      took: each.durationMs
    }
  })

interface Fingerprint {
  /** Null without tools. */
  readonly digest: string | null
}

/** Keyed by the list itself: agents offer the same list objects repeatedly. */
const fingerprints = new WeakMap<ReadonlyArray<OfferedTool>, Fingerprint>()

const fingerprintOf = (tools: ReadonlyArray<OfferedTool>): Fingerprint => {
  const known = fingerprints.get(tools)
  if (known) return known
  const digest =
    tools.length === 0 ? null : createHash("sha256").update(JSON.stringify(tools), "utf8").digest("hex")
  const made: Fingerprint = { digest }
  fingerprints.set(tools, made)
  return made
}

/** Remembers tool lists that are stored. Beyond its limit the oldest is forgotten and sent again. */
const makeListed = () => {
  const known = new Set<string>()
  const keyOf = (projectId: ProjectId, digest: string): string => `${projectId} ${digest}`
  return {
    has: (projectId: ProjectId, digest: string): boolean => known.has(keyOf(projectId, digest)),
    add: (projectId: ProjectId, digest: string): void => {
      known.add(keyOf(projectId, digest))
      if (known.size <= runLimits.rememberedToolLists) return
      for (const oldest of known) {
        known.delete(oldest)
        return
      }
    }
  }
}

// Decodes the database rows of model calls.

export interface ModelCallRow {
  readonly number: number
  readonly purpose: ModelCall["purpose"]
  readonly step: number
  readonly try: number
  readonly provider: string
  readonly model: string
  readonly contextName: ContextName
  readonly afterEvent: number
  readonly answerEvent: number | null
  readonly toolsDigest: string | null
  readonly parameters: ModelExchange["request"]["parameters"]
  readonly finishReason: string | null
  readonly error: string | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly reasoningTokens: number
  readonly usageEstimated: boolean
  readonly costMicros: bigint | null
  readonly startedAt: Date
  readonly firstOutputMs: number | null
  readonly durationMs: number
}

export const toModelCall = (row: ModelCallRow, flowStep: FlowStepAtWork | null): ModelCall => ({
  number: row.number,
  purpose: row.purpose,
  step: row.step,
  flowStep,
  try: row.try,
  provider: row.provider,
  model: row.model,
  status: row.answerEvent === null ? "failed" : "answered",
  finishReason: row.finishReason,
  error: row.error,
  usage: {
    inputTokens: row.inputTokens,
    outputTokens: row.outputTokens,
    ...usageDetails(row)
  },
  isUsageEstimated: row.usageEstimated,
  costUsd: toDollars(row.costMicros),
  startedAt: row.startedAt.toISOString(),
  firstOutputMs: row.firstOutputMs,
  durationMs: row.durationMs,
  afterEvent: row.afterEvent,
  answerEvent: row.answerEvent
})

export const toDollars = (micros: bigint | null): number | null =>
  micros === null ? null : Number(micros) / microsPerDollar
