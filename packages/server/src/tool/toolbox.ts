/**
 * Makes one tool call of a run: effect, record and context event together.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * One transaction, guarded by the attempt's token: either the effect, the
 * `tool_calls` row and the event that tells the model are all there, or none is;
 * and so is the context's taint, where the answer shows something untrusted.
 * A call that is made again finds its record and answers it. Everything that can
 * go wrong with a call is an answer to the model; only a lost attempt is a
 * failure here.
 */
import type { LoggedEvent, NewEvent } from "@tropism/domain/context-event"
import { findFault, isJsonObject } from "@tropism/domain/json"
import { exitLoopTool } from "@tropism/domain/flow"
import type { ToolCallId } from "@tropism/domain/ids"
import type { MadeCall } from "@tropism/domain/defined-tool"
import { shortened } from "@tropism/domain/text-beginning"
import { Context, Effect, Layer, Schema } from "effect"
import type { LogEnd } from "../agent/appending.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"
import type { BuiltInToolName } from "./built-in-tools.ts"
import { endedEvent, startedEvent } from "./call-events.ts"
import { Denials, lacksRight, whyDenied } from "./denials.ts"
import { GraphEffects } from "./graph-effects.ts"
import * as Args from "./graph-tools.ts"
import { graphTools } from "./graph-tools.ts"
import { makeLogAppend } from "./log-append.ts"
import { AttemptLost, RunGuard, type RunPrincipal } from "./principal.ts"
import { read } from "./read-arguments.ts"
import { AskUser, ChildRuns, ExitLoop, ListAgents, Questions, SpawnAgent } from "./run-tools.ts"
import { TodoEffects } from "./todo-effects.ts"
import { isTodoTool } from "./todo-tools.ts"
import { type CallStatus, ToolCalls } from "./tool-calls.ts"
import { logRefusal, logUnknownTool } from "./refusal-log.ts"
import { refusalWords } from "./refusal-words.ts"
import type { ToolEffect, ToolFailed } from "./tool-effect.ts"
import { type Intent, wantedChange } from "./wanted-change.ts"
import { inBacktest } from "./would-be.ts"
import { bounded } from "./wrong-calls.ts"

/** What else is asked in the transaction of a call, when its outcome is kept. */
export type Beside = Effect.Effect<void, never, ProjectTransaction>

/** What a call came to, as the model reads it. */
export interface Outcome {
  readonly status: CallStatus
  readonly result: Schema.Json
  /** What the call added to the context's log; nothing when it was made before. */
  readonly appended: ReadonlyArray<LoggedEvent>
}

export class Toolbox extends Context.Service<
  Toolbox,
  {
    /** Makes a call of a built-in tool, once; `end` is where the caller last saw its log end. What is asked beside it is asked only of a call that is made now. */
    readonly call: (
      principal: RunPrincipal,
      call: MadeCall,
      end?: LogEnd,
      beside?: Beside
    ) => Effect.Effect<Outcome, AttemptLost>
    /** Records a call that reads nothing of the project, with what it answers. */
    readonly tell: (
      principal: RunPrincipal,
      call: MadeCall,
      answer: Effect.Effect<Schema.Json, ChangeRefused>,
      end?: LogEnd,
      beside?: Beside
    ) => Effect.Effect<Outcome, AttemptLost>
    /** Records a call that a client answers later, within a time. */
    readonly hold: (
      principal: RunPrincipal,
      call: MadeCall,
      answerWithinMs: number,
      end?: LogEnd
    ) => Effect.Effect<Outcome, AttemptLost>
    /** Answers a call of a tool that is not offered, or whose arguments cannot be used, on record, without making it. */
    readonly refuse: (
      principal: RunPrincipal,
      call: MadeCall,
      refusal: ChangeRefused
    ) => Effect.Effect<Outcome, AttemptLost>
  }
>()("@tropism/server/tool/Toolbox") {
  static readonly layer = Layer.effect(
    Toolbox,
    Effect.gen(function* () {
      const database = yield* Database
      const effects = yield* GraphEffects
      const todos = yield* TodoEffects
      const children = yield* ChildRuns
      const questions = yield* Questions
      const guard = yield* RunGuard
      const toolCalls = yield* ToolCalls
      const denials = yield* Denials
      const append = yield* makeLogAppend
      const ids = yield* Ids

      /** Reads the arguments and does what the tool does. */
      const perform = (principal: RunPrincipal, call: MadeCall, id: ToolCallId) =>
        Effect.gen(function* () {
          const refusal = findRefusal(principal, call)
          if (refusal) return yield* refusal
          const tool = call.name as BuiltInToolName
          if (isTodoTool(tool)) return yield* todos.perform(tool, call.arguments, principal)
          switch (tool) {
            case "spawn_agent":
              return yield* children.spawn(yield* read(SpawnAgent, call.arguments), principal, id)
            case "list_agents":
              return yield* Effect.andThen(read(ListAgents, call.arguments), children.list(principal))
            case "ask_user":
              return yield* questions.ask(yield* read(AskUser, call.arguments), principal, id)
            case "exit_loop": {
              const { output } = yield* read(ExitLoop, call.arguments)
              return answered({ status: "ended", ...(typeof output === "string" ? { output } : {}) })
            }
            case "search_objects":
              return yield* effects.searchObjects(yield* read(Args.SearchObjects, call.arguments), principal)
            case "get_object":
              return yield* effects.getObject(yield* read(Args.GetObject, call.arguments), principal)
            case "neighbors":
              return yield* effects.neighbors(yield* read(Args.Neighbors, call.arguments), principal)
            case "create_object":
            case "update_object":
            case "delete_object":
            case "create_relationship":
            case "update_relationship":
            case "delete_relationship": {
              const { change, intent } = yield* wantedChange(tool, call.arguments)
              return yield* effects.change(change, withReasoning(intent, call), principal, id)
            }
          }
        })

      /** The transaction that every call goes through. */
      const recorded = (
        principal: RunPrincipal,
        call: MadeCall,
        effect: (id: ToolCallId) => Effect.Effect<ToolEffect, ChangeRefused | ToolFailed, ProjectTransaction>,
        { beside = Effect.void, end, isReading = false }: Circumstances = {}
      ) =>
        Effect.gen(function* () {
          const id = (yield* ids.next) as ToolCallId
          const asked = database.together(guard.hold(principal), toolCalls.find(principal.runId, call.id))
          // What only reads waits for no answer, and leaves nothing to be undone where it is refused.
          const [[, earlier], seen] = isReading
            ? yield* database.together(asked, outcomeOf(effect(id)))
            : [yield* asked, undefined]
          if (earlier) return { status: earlier.status, result: earlier.result, appended: [] }
          const { status, answerWithinMs, decision, denied, promotionId, reads, taint, waitsFor, ...made } =
            seen ?? (yield* outcomeOf(database.attempt(effect(id))))
          const result = bounded(made.result)
          const record = toolCalls.keeping(principal.projectId, {
            id,
            runId: principal.runId,
            agentId: principal.agentId,
            userId: principal.userId,
            contextName: principal.contextName,
            callId: call.id,
            tool: call.name,
            arguments: call.arguments,
            coerced: call.coerced ?? null,
            status,
            decision,
            promotionId: promotionId ?? null,
            result: waitsFor === undefined ? result : heldResult(result, call),
            reads,
            answerWithinMs
          })
          const events = eventsOf(call, status, result, waitsFor)
          const [appended] = yield* database.together(append(principal, end, events, taint, [record]), beside)
          if (denied && principal.backtest === null) yield* denials.ofCall(principal, id, call, denied)
          yield* CrashPoint.hit("tool.beforeCommit")
          return { status, result, appended }
        }).pipe(
          (transaction) => database.inProject(principal.projectId, transaction),
          Effect.tap(() => CrashPoint.hit("tool.afterCommit"))
        )

      return Toolbox.of({
        call: (principal, call, end, beside) =>
          recorded(
            principal,
            call,
            (id) =>
              Effect.tapError(perform(principal, call, id), (refusal) =>
                refusal._tag === "ChangeRefused" && lacksRight(refusal) && principal.backtest === null
                  ? logRefusal(principal, call, "An agent's change was refused", refusal.detail)
                  : Effect.void
              ),
            { end, beside, isReading: readsOnly(call.name) }
          ),
        tell: (principal, call, answer, end, beside) =>
          recorded(principal, call, () => Effect.map(answer, answered), { end, beside }),
        hold: (principal, call, answerWithinMs, end) =>
          recorded(
            principal,
            call,
            () =>
              Effect.flatMap(toolCalls.awaited(principal.runId), ({ length }) =>
                length < toolLimits.openClientCallsPerRun
                  ? Effect.succeed<ToolEffect>({
                      result: { status: "waiting" },
                      decision: null,
                      reads: [],
                      waitsFor: "client",
                      answerWithinMs
                    })
                  : Effect.fail(refused("state", `${length} calls wait for a client already: wait for those`))
              ),
            { end }
          ),
        refuse: (principal, call, refusal) =>
          recorded(principal, call, () =>
            Effect.andThen(
              lacksRight(refusal) ? logUnknownTool(principal, call) : Effect.void,
              Effect.fail(refusal)
            )
          )
      })
    })
  )
}

/** Why a call is not made, whatever its tool would say. */
const findRefusal = ({ backtest }: RunPrincipal, call: MadeCall): ChangeRefused | undefined => {
  const fault = findFault(call.arguments)
  if (fault) return refused("invalid", fault.message, fault.pointer)
  return backtest && !isTriedOut(call.name) ? inBacktest(call.name) : undefined
}

/** The tools that a backtest's run may use: what they do is read as of then, or only kept beside the backtest. */
const isTriedOut = (tool: string): boolean => Object.hasOwn(graphTools, tool) || tool === exitLoopTool

/** The words beside a call are its reasoning where it gives none (S000-R23). */
const withReasoning = (intent: Intent, { words = "" }: MadeCall): Intent =>
  (intent.reasoning ?? "").trim() !== "" || words.trim() === ""
    ? intent
    : { ...intent, reasoning: shortened(words.trim(), toolLimits.reasoningMaxChars) }

/** How a call is made. */
interface Circumstances {
  readonly end?: LogEnd | undefined
  readonly beside?: Beside | undefined
  /** It only looks at the graph. */
  readonly isReading?: boolean
}

/** What is kept of a call, whatever came of it. */
const outcomeOf = <R>(effect: Effect.Effect<ToolEffect, ChangeRefused | ToolFailed, R>) =>
  effect.pipe(
    Effect.map((done) => ({
      ...done,
      status: done.waitsFor === undefined ? ("completed" as const) : ("started" as const),
      denied: undefined
    })),
    Effect.catchTags({
      ChangeRefused: (refusal) => Effect.succeed(refusalEffect(refusal)),
      ToolFailed: ({ result }) => Effect.succeed(failureEffect(result))
    })
  )

/** The tools that only look at the graph. */
export const readsOnly = (tool: string): boolean =>
  tool === "search_objects" || tool === "get_object" || tool === "neighbors"

/** What a refusal says to the model. */
const refusalEffect = (refusal: ChangeRefused) => {
  const result = refusalWords(refusal)
  const denied = whyDenied(refusal)
  return denied || refusal.reason === "backtest"
    ? { ...failureEffect(result), status: "refused" as const, decision: "refuse" as const, denied }
    : failureEffect(result)
}

/** A call that came to nothing. */
const failureEffect = (result: Schema.Json) => ({
  status: "failed" as const,
  decision: null,
  result,
  denied: undefined,
  reads: [],
  taint: [],
  promotionId: undefined,
  waitsFor: undefined,
  answerWithinMs: undefined
})

const answered = (result: Schema.Json): ToolEffect => ({ result, decision: null, reads: [] })

const eventsOf = (
  call: MadeCall,
  status: CallStatus,
  result: Schema.Json,
  waitsFor: ToolEffect["waitsFor"]
): ReadonlyArray<NewEvent> =>
  waitsFor ? [startedEvent(call, waitsFor)] : [startedEvent(call), endedEvent(call, status, result)]

/** What is kept of a call whose outcome somebody else brings, for whoever brings it. */
const heldResult = (result: Schema.Json, { calledAs }: MadeCall): Schema.Json =>
  calledAs === undefined || !isJsonObject(result) ? result : { ...result, calledAs: calledAs.name }
