/**
 * One step: asks the model, and keeps what it said.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * No transaction is open while the model speaks. An answer after which nothing
 * is left to do ends the run in the transaction that keeps it; a request that
 * takes longer than the run may is aborted.
 */
import { fold, type ReducedContext } from "@tropism/domain/context"
import type { NewEvent } from "@tropism/domain/context-event"
import { nextPlace } from "@tropism/domain/flow"
import { Clock, Effect, Option } from "effect"
import { endOf } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { type Answer, askModel } from "./answer.ts"
import { type Bench, decideNow, graceEndOf } from "./bench.ts"
import { type Closing, closingEvents } from "./closing.ts"
import { durationMs, makeRests } from "./rests.ts"
import { Runs } from "./runs.ts"
import { summaryOf } from "./sentences.ts"
import { makeWriting } from "./writing.ts"

export const makeModelStep = Effect.gen(function* () {
  const runs = yield* Runs
  const contexts = yield* Contexts
  const { append, appendAndEnd } = yield* makeWriting
  const { finish, pause, softStop } = yield* makeRests

  const requestModel = Effect.fn("Actor.requestModel")(function* (
    bench: Bench,
    context: ReducedContext,
    withTools: boolean
  ) {
    const { deadlineMs, run } = bench
    const { model, tools } = yield* bench.equipment(context)
    const spent = yield* runs.mayAsk(run)
    if (spent) {
      const end = runs.pause(run, "budget", summaryOf(context.lastText), spent.reason)
      return yield* finish(run, context, { type: "interrupted", reason: "budget" }, end)
    }
    yield* CrashPoint.hit("run.beforeModel")
    let partialText = ""
    const asked = askModel(model, run, context, withTools ? tools.offered : [], (text) => {
      partialText = text
    }).pipe(Effect.provideService(Contexts, contexts))
    const isStopped = Option.isSome(context.run.softStop) && context.run.id === run.id
    const endMs = isStopped ? graceEndOf(context, deadlineMs) : deadlineMs
    const answer = yield* within(asked, endMs)
    yield* CrashPoint.hit("run.afterModel")
    if (Option.isSome(answer)) return yield* keep(bench, context, answer.value)
    return isStopped
      ? yield* pause(run, context, "timeout", partialText)
      : yield* softStop(run, context, "timeout", partialText)
  })

  /** Keeps an answer and counts its step; one that asks for no tool ends the run in the same transaction. */
  const keep = Effect.fnUntraced(function* (bench: Bench, context: ReducedContext, answer: Answer) {
    const { run } = bench
    const said: NewEvent = {
      type: "AssistantMessageEvent",
      content: answer.text,
      toolCalls: answer.toolCalls,
      runId: run.id,
      model: answer.model,
      usage: answer.usage
    }
    const counting = runs.counting(run, answer.usage, answer.model, answer.costMicros ?? 0)
    const { events } = yield* contexts.plan(run.projectId, run.contextName, endOf(context), [said])
    const after = fold(events, context)
    const next = yield* decideNow(bench, after, context.currentTurnNumber)
    if (next.type === "completeTurn" && !after.isTurnDue && isLastTurn(bench, after)) {
      yield* CrashPoint.hit("run.beforeComplete")
      const closing: Closing = { type: "completed", durationMs: yield* durationMs(after) }
      const end = runs.complete(run, summaryOf(next.text))
      const isOver = yield* appendAndEnd(
        run,
        context,
        [said, ...closingEvents(after, closing)],
        end,
        counting
      )
      yield* CrashPoint.hit("run.afterComplete")
      if (isOver) return undefined
    }
    const kept = yield* append(run, context, [said], counting)
    yield* CrashPoint.hit("run.afterStep")
    return kept
  })

  return { requestModel }
})

/** Aborts what is not through by an instant. */
const within = <A, E, R>(effect: Effect.Effect<A, E, R>, endMs: number | null) =>
  endMs === null
    ? Effect.map(effect, Option.some)
    : Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.timeoutOption(effect, Math.max(0, endMs - now)))

/** Whether nothing follows the turn that is open. */
export const isLastTurn = ({ flow }: Bench, context: ReducedContext): boolean =>
  flow === undefined || nextPlace(flow, context.flow) === undefined
