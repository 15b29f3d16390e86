/**
 * Sends one question to several variants of a context and reads their answers side by side.
 *
 * All variants begin in one transaction or none does: their forks, their settings, their questions and their runs. The event in the
 * original context comes last and triggers no run, so the original continues unchanged.
 */
import type { Agent } from "@tropism/domain/agent"
import { microsPerDollar } from "@tropism/domain/chain"
import {
  type ComparedVariant,
  type Comparison,
  comparisonBounds,
  type ComparisonId,
  type ComparisonInput,
  type VariantInput
} from "@tropism/domain/comparison"
import { ContextName, type NewEvent } from "@tropism/domain/context-event"
import type { RunId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { PromptFailed } from "../agents/template.ts"
import { type ContextExists, type ContextHead, Contexts } from "../contexts/contexts.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { Admission, type TriggerRefused } from "../runs/admission.ts"
import { ContextBeginnings, type ForkRefused } from "./new-contexts.ts"
import { openToPeople, Triggers } from "./manual-triggers.ts"

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Comparisons extends Context.Service<
  Comparisons,
  {
    /** Starts every variant; nothing is written when one of them cannot start. */
    readonly start: (
      from: ContextHead,
      agent: Agent,
      input: ComparisonInput,
      by: UserId
    ) => InProject<ComparisonId, ContextExists | PromptFailed | ForkRefused | TriggerRefused>
    /** Returns the results of the variants so far. */
    readonly get: (from: ContextName, id: ComparisonId) => InProject<Comparison | undefined>
  }
>()("@tropism/server/dispatch/Comparisons") {
  static readonly layer = Layer.effect(
    Comparisons,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const contexts = yield* Contexts
      const beginnings = yield* ContextBeginnings
      const triggers = yield* Triggers
      const admission = yield* Admission

      /** Returns the runs just queued, by context. */
      const runsOn = Effect.fnUntraced(function* (names: ReadonlyArray<ContextName>) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ id: RunId; contextName: ContextName }>`
          select id, context_name from kb.agent_runs
          where project_id = ${projectId} and context_name = any(${names}::text[]) and status in ('queued', 'running', 'paused')`
        return new Map(rows.map(({ contextName, id }) => [contextName, id]))
      }, orDie)

      const start = Effect.fn("Comparisons.start")(function* (
        from: ContextHead,
        agent: Agent,
        { at, content, variants }: ComparisonInput,
        by: UserId
      ) {
        yield* openToPeople(from)
        // Lock the agent before any log, in the order of every incoming message.
        yield* admission.places(agent.id)
        const short = (yield* ids.next).slice(-8)
        const names = variants.map(({ label }) => nameOf(from.name, short, label))
        const heads = yield* beginnings.forkAll(names, agent, { from, at: at ?? undefined })
        for (const [index, variant] of variants.entries()) {
          const head = heads[index]
          if (!head) continue
          yield* contexts.append(head.name, differencesOf(variant))
          const asked = variant.content ?? content
          yield* triggers.byEvent(
            head,
            { type: "UserMessageEvent", content: asked, triggersAgentTurn: true },
            by
          )
        }
        const runs = yield* runsOn(names)
        const comparison = `${at ?? from.eventCount}-${short}`
        const told = variants.flatMap(({ label }, index) => {
          const context = names[index]
          const runId = context && runs.get(context)
          return context && runId ? [{ label, context, runId }] : []
        })
        yield* contexts.append(from.name, [
          { type: "ComparisonStartedEvent", comparison, content, variants: told }
        ])
        return comparison
      })

      /** Finds the comparison's event, which is within a few events of the point where its variants fork. */
      const begun = Effect.fnUntraced(function* (from: ContextName, id: ComparisonId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<BegunRow>`
          select payload ->> 'content' as content, payload -> 'variants' as variants, created_at from kb.context_events
          where project_id = ${projectId} and context_name = ${from} and number > ${Number.parseInt(id, 10)}
            and type = 'ComparisonStartedEvent' and payload ->> 'comparison' = ${id}
          order by number limit 1`
        return row
      })

      const outcomesOf = Effect.fnUntraced(function* (variants: BegunRow["variants"]) {
        const { projectId } = yield* ProjectTransaction
        const runIds = variants.map(({ runId }) => runId)
        return yield* sql<OutcomeRow>`
          select run.id, run.status, run.model, run.summary, run.error_message, run.usage, run.cost_micros, run.step_count,
            (extract(epoch from run.completed_at - run.started_at) * 1000)::int as duration_ms, said.content as answer,
            coalesce(made.calls, '[]') as calls
          from kb.agent_runs run
          left join lateral (
            select payload ->> 'content' as content from kb.context_events event
            where event.project_id = run.project_id and event.context_name = run.context_name and event.type = 'AssistantMessageEvent'
              and event.payload ->> 'runId' = run.id::text and event.payload ->> 'content' <> ''
            order by number desc limit 1
          ) said on true
          left join lateral (
            select jsonb_agg(jsonb_build_object('tool', call.tool, 'status', call.status) order by call.id) as calls
            from (select id, tool, status from kb.tool_calls where run_id = run.id order by id limit ${comparisonBounds.shownCalls}) call
          ) made on true
          where run.project_id = ${projectId} and run.id = any(${runIds}::uuid[])`
      })

      const get = Effect.fn("Comparisons.get")(function* (from: ContextName, id: ComparisonId) {
        const row = yield* begun(from, id)
        if (!row) return undefined
        const outcomes = new Map((yield* outcomesOf(row.variants)).map((each) => [each.id, each]))
        const comparison: Comparison = {
          id,
          context: from,
          content: row.content,
          variants: row.variants.flatMap(({ context, label, runId }) => {
            const outcome = outcomes.get(runId)
            return outcome ? [{ label, context, ...toVariant(outcome) }] : []
          }),
          createdAt: row.createdAt.toISOString()
        }
        return comparison
      }, orDie)

      return Comparisons.of({ start, get })
    })
  )
}

interface BegunRow {
  readonly content: string
  readonly variants: ReadonlyArray<{
    readonly label: string
    readonly context: ContextName
    readonly runId: RunId
  }>
  readonly createdAt: Date
}

interface OutcomeRow extends Omit<ComparedVariant, "label" | "context" | "runId" | "costUsd" | "toolCalls"> {
  readonly id: RunId
  readonly summary: string | null
  readonly costMicros: bigint
  readonly calls: ComparedVariant["toolCalls"]
}

/** The text of an unfinished answer is in the run's row. */
const toVariant = (row: OutcomeRow): Omit<ComparedVariant, "label" | "context"> => ({
  runId: row.id,
  status: row.status,
  answer: row.answer ?? row.summary,
  errorMessage: row.errorMessage,
  usage: row.usage,
  costUsd: Number(row.costMicros) / microsPerDollar,
  durationMs: row.durationMs,
  model: row.model,
  stepCount: row.stepCount,
  toolCalls: row.calls
})

/** Returns a name for the fork; the original's name is cut to fit the maximum length. */
const nameOf = (from: ContextName, short: string, label: string): ContextName =>
  ContextName.make(`${from.slice(0, nameMaxChars - short.length - label.length - 2)}.${short}.${label}`)

const nameMaxChars = 100

/** Returns the settings of a variant, appended to its fork before the question. */
const differencesOf = ({ model, systemPrompt }: VariantInput): ReadonlyArray<NewEvent> => [
  ...(systemPrompt ? [{ type: "SystemPromptEvent", content: systemPrompt } as const] : []),
  ...(model ? [{ type: "SetLlmConfigEvent", role: "primary", ...model } as const] : [])
]
