/**
 * Makes one tool call of a run: effect, record and context event together.
 *
 * **Invariant** One transaction, fenced by the attempt's token, writes the effect, the `tool_calls` row, the event for
 * the model and the context's taint, or none of them. A repeated call returns its recorded answer. Every fault of a call
 * is an answer to the model; only a lost attempt is a failure here.
 */
import { builtInTools } from "@tropism/domain/built-in-tools"
import { type LoggedEvent, type NewEvent, eventNumber } from "@tropism/domain/context-event"
import type { MadeCall } from "@tropism/domain/defined-tool"
import { exitLoopTool } from "@tropism/domain/flow"
import type { ToolCallId } from "@tropism/domain/ids"
import { findFault, isJsonObject, type JsonFault } from "@tropism/domain/json"
import { schemaFaults } from "@tropism/domain/schema-faults"
import type { TaintSource } from "@tropism/domain/taint"
import { shortened } from "@tropism/domain/text-beginning"
import { Context, Effect, Layer, Schema, Deferred, Semaphore, Result } from "effect"
import type { Statement } from "effect/sql"
import type { LogEnd } from "../contexts/appending.ts"
import { Contexts } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/change-refused.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"
import { readArguments, bounded, argumentsAreStrict, inputSchemaOf } from "./arguments.ts"
import { Denials, lacksRight, whyDenied } from "./denials.ts"
import { GraphEffects, type Intent, wantedChange, inBacktest } from "./graph-effects.ts"
import * as Args from "./graph-tools.ts"
import { graphTools, Reasoning } from "./graph-tools.ts"
import { AttemptLost, RunGuard, type RunPrincipal } from "./principal.ts"
import { AskUser, ChildRuns, ExitLoop, ListAgents, Questions, SpawnAgent, runTools } from "./run-tools.ts"
import { TodoEffects, isTodoTool, todoTools } from "./todo-tools.ts"
import {
  endedEvent,
  startedEvent,
  type CallStatus,
  ToolCalls,
  logRefusal,
  logUnknownTool,
  refusalText,
  type ToolEffect,
  type ToolFailed
} from "./tool-calls.ts"

/** Further work in the call's transaction, when its outcome is recorded. */
export type Beside = Effect.Effect<void, never, ProjectTransaction>

/** The outcome as the model reads it. */
export interface Outcome {
  readonly status: CallStatus
  readonly result: Schema.Json
  /** Events that the call appended; none when it was made before. */
  readonly appended: ReadonlyArray<LoggedEvent>
}

export class Toolbox extends Context.Service<
  Toolbox,
  {
    /**
     * Makes a call of a built-in tool once; `end` is the caller's last known end of the log. `beside` runs only when the call is
     * made now.
     */
    readonly call: (
      principal: RunPrincipal,
      call: MadeCall,
      end?: LogEnd,
      beside?: Beside
    ) => Effect.Effect<Outcome, AttemptLost>
    /** Records a call with its answer, without reading the project. */
    readonly tell: (
      principal: RunPrincipal,
      call: MadeCall,
      answer: Effect.Effect<Schema.Json, ChangeRefused>,
      end?: LogEnd,
      beside?: Beside
    ) => Effect.Effect<Outcome, AttemptLost>
    /** Records a call that a client answers later, within a time limit. */
    readonly hold: (
      principal: RunPrincipal,
      call: MadeCall,
      answerWithinMs: number,
      end?: LogEnd
    ) => Effect.Effect<Outcome, AttemptLost>
    /** Records and answers a call without making it: its tool is not offered or its arguments are unusable. */
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

      /** Decodes the arguments and runs the tool. */
      const perform = (principal: RunPrincipal, call: MadeCall, id: ToolCallId) =>
        Effect.gen(function* () {
          const refusal = findRefusal(principal, call)
          if (refusal) return yield* refusal
          const tool = call.name as BuiltInToolName
          if (isTodoTool(tool)) return yield* todos.perform(tool, call.arguments, principal)
          switch (tool) {
            case "spawn_agent":
              return yield* children.spawn(yield* readArguments(SpawnAgent, call.arguments), principal, id)
            case "list_agents":
              return yield* Effect.andThen(
                readArguments(ListAgents, call.arguments),
                children.list(principal)
              )
            case "ask_user":
              return yield* questions.ask(yield* readArguments(AskUser, call.arguments), principal, id)
            case "exit_loop": {
              const { output } = yield* readArguments(ExitLoop, call.arguments)
              return answered({ status: "ended", ...(typeof output === "string" ? { output } : {}) })
            }
            case "search_objects":
              return yield* effects.searchObjects(
                yield* readArguments(Args.SearchObjects, call.arguments),
                principal
              )
            case "get_object":
              return yield* effects.getObject(yield* readArguments(Args.GetObject, call.arguments), principal)
            case "neighbors":
              return yield* effects.neighbors(yield* readArguments(Args.Neighbors, call.arguments), principal)
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

      /** The transaction of every call. */
      const recorded = (
        principal: RunPrincipal,
        call: MadeCall,
        effect: (id: ToolCallId) => Effect.Effect<ToolEffect, ChangeRefused | ToolFailed, ProjectTransaction>,
        { beside = Effect.void, end, isReading = false }: Circumstances = {}
      ) =>
        Effect.gen(function* () {
          const id = (yield* ids.next) as ToolCallId
          const asked = database.together(guard.hold(principal), toolCalls.find(principal.runId, call.id))
          // A read may run in the same round trip: a refusal leaves nothing to roll back.
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

/** Returns why a call is not made, whatever its tool. */
const findRefusal = ({ backtest }: RunPrincipal, call: MadeCall): ChangeRefused | undefined => {
  const fault = findFault(call.arguments)
  if (fault) return refused("invalid", fault.message, fault.pointer)
  return backtest && !isTriedOut(call.name) ? inBacktest(call.name) : undefined
}

/** Whether a backtest may use the tool: it reads as of then, or its effect stays with the backtest. */
const isTriedOut = (tool: string): boolean => Object.hasOwn(graphTools, tool) || tool === exitLoopTool

/** The text beside a call is its reasoning when it gives none (S000-R23). */
const withReasoning = (intent: Intent, { words = "" }: MadeCall): Intent =>
  (intent.reasoning ?? "").trim() !== "" || words.trim() === ""
    ? intent
    : { ...intent, reasoning: shortened(words.trim(), toolLimits.reasoningMaxChars) }

/** Options of a call. */
interface Circumstances {
  readonly end?: LogEnd | undefined
  readonly beside?: Beside | undefined
  /** Whether it only reads the graph. */
  readonly isReading?: boolean
}

/** Turns any result of a call into its recorded outcome. */
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

/** Whether a tool only reads the graph. */
export const readsOnly = (tool: string): boolean =>
  tool === "search_objects" || tool === "get_object" || tool === "neighbors"

/** The effect of a refusal, for the model. */
const refusalEffect = (refusal: ChangeRefused) => {
  const result = refusalText(refusal)
  const denied = whyDenied(refusal)
  return denied || refusal.reason === "backtest"
    ? { ...failureEffect(result), status: "refused" as const, decision: "refuse" as const, denied }
    : failureEffect(result)
}

/** The effect of a failed call. */
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

/** The interim result of a call that is answered later, for the one who answers it. */
const heldResult = (result: Schema.Json, { calledAs }: MadeCall): Schema.Json =>
  calledAs === undefined || !isJsonObject(result) ? result : { ...result, calledAs: calledAs.name }

// Runs the calls of one answer concurrently and orders them in the log.
//
// A call waits for earlier ones only where order could matter. Calls begin in the order of the answer. An outcome waits for
// earlier ones, unless its call must not be repeated: that one is recorded at once, because a crash would lose it. The model
// reads results in its own order either way.

/** Traits that decide which calls a call waits for. */
export interface CallTraits {
  /** The foreign server; null for a call answered here. */
  readonly server: string | null
  /** Whether it changes nothing. */
  readonly isReading: boolean
  /** Whether its answer may be untrusted. */
  readonly mayTaint: boolean
  /** Whether taint refuses it or turns it into a suggestion. */
  readonly mindsTaint: boolean
}

/** The points at which a call waits. */
export interface Place {
  /** Waits until the earlier calls have begun. */
  readonly toBegin: Effect.Effect<void>
  /** Signals that the call has begun or will not. */
  readonly hasBegun: Effect.Effect<void>
  /** Waits until the earlier calls have ended. */
  readonly toEnd: Effect.Effect<void>
}

/** Whether a call must wait for an earlier one to end. */
export const mustWait = (earlier: CallTraits, later: CallTraits): boolean => {
  // A write here takes milliseconds, and every later call may depend on it.
  if (earlier.server === null && !earlier.isReading) return true
  if (earlier.mayTaint && later.mindsTaint) return true
  return earlier.server === later.server && !(earlier.isReading && later.isReading)
}

/** Makes calls in the order of the answer, as concurrently as allowed. */
export const sideBySide = <A, E, R>(
  calls: ReadonlyArray<{
    readonly traits: CallTraits
    readonly make: (place: Place) => Effect.Effect<A, E, R>
  }>
): Effect.Effect<ReadonlyArray<A>, E, R> => {
  const begun = calls.map(() => Deferred.makeUnsafe<void>())
  const over = calls.map(() => Deferred.makeUnsafe<void>())
  const marked = (marks: ReadonlyArray<Deferred.Deferred<void>>) =>
    Effect.forEach(marks, Deferred.await, { discard: true })
  return Effect.forEach(
    calls,
    ({ make, traits }, index) => {
      const [isBegun, isOver] = [begun[index], over[index]] as [
        Deferred.Deferred<void>,
        Deferred.Deferred<void>
      ]
      const hasBegun = Effect.asVoid(Deferred.succeed(isBegun, undefined))
      const conflicts = over.filter((_, at) => {
        const earlier = calls[at]?.traits
        return at < index && earlier !== undefined && mustWait(earlier, traits)
      })
      // A call that waits for another does not delay the start of later ones.
      const inTurn = conflicts.length === 0 ? Effect.void : Effect.andThen(hasBegun, marked(conflicts))
      const place: Place = {
        toBegin: marked(begun.slice(0, index)),
        hasBegun,
        toEnd: marked(over.slice(0, index))
      }
      return Effect.andThen(
        inTurn,
        Effect.suspend(() => make(place))
      ).pipe(Effect.ensuring(Effect.andThen(hasBegun, Deferred.succeed(isOver, undefined))))
    },
    { concurrency: toolLimits.callsAtOnce }
  )
}

// Appends a tool's events to the log of the calling run.
//
// Concurrent calls share one cursor: their transactions run in turn, so none waits for another's lock while holding a
// connection, and each knows the log's end.

/** Appends in one query when the log ends where the caller last saw it, else under its lock. */
export const makeLogAppend = Effect.map(Contexts, (contexts) =>
  Effect.fnUntraced(function* (
    { projectId, contextName }: RunPrincipal,
    end: LogEnd | undefined,
    events: ReadonlyArray<NewEvent>,
    taint: ReadonlyArray<TaintSource> = [],
    alongside: ReadonlyArray<Statement.Fragment> = []
  ): Effect.fn.Return<ReadonlyArray<LoggedEvent>, never, ProjectTransaction> {
    if (end) {
      const planned = yield* contexts.plan(projectId, contextName, end, events, { taint, alongside })
      if (yield* contexts.write(contextName, planned)) return planned.events
    }
    return yield* contexts.append(contextName, events, { taint, alongside })
  })
)

/** Serializes the appends of calls. */
export interface LogCursor {
  /** Runs a transaction exclusively at the known end of the log; its appended events move the end. */
  readonly write: <A extends Appended, E, R>(
    transaction: (end: LogEnd) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Runs an effect without writes exclusively. */
  readonly alone: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** All appended events; none when other events are or may be between them, and the log must be read again. */
  readonly appended: () => ReadonlyArray<LoggedEvent>
}

interface Appended {
  readonly appended: ReadonlyArray<LoggedEvent>
}

/** Returns a cursor at a log's end; no turn begins or ends within a call. */
export const makeLogCursor = (start: LogEnd): LogCursor => {
  const turns = Semaphore.makeUnsafe(1)
  const all: Array<LoggedEvent> = []
  let end = start
  let isWhole = true
  const note = ({ appended }: Appended): void => {
    const [first, last] = [appended[0], appended.at(-1)]
    if (!first || !last || eventNumber(first.id) !== end.lastNumber + 1) isWhole = false
    if (last) end = { ...end, lastNumber: eventNumber(last.id) }
    all.push(...appended)
  }
  const alone = turns.withPermits(1)
  return {
    alone,
    write: (transaction) =>
      alone(
        Effect.tap(
          Effect.suspend(() => transaction(end)),
          (made) => Effect.sync(() => note(made))
        )
      ),
    appended: () => (isWhole ? all : [])
  }
}

// Every tool of the built-in servers, as MCP lists it.
//
// A built-in tool's name is unique among the built-in servers, and the model sees that name only.

export type BuiltInServer = keyof typeof builtInTools
type BuiltInToolName = keyof typeof graphTools | keyof typeof runTools | keyof typeof todoTools

const all = { ...graphTools, ...runTools, ...todoTools }

export const isBuiltInTool = (name: string): name is BuiltInToolName => Object.hasOwn(all, name)

/** The tools that only read. */
const looking: ReadonlySet<string> = new Set<BuiltInToolName>([
  "search_objects",
  "get_object",
  "neighbors",
  "list_agents",
  "list_tasks"
])

export const changesNothing = (tool: string): boolean => looking.has(tool)

/** Returns the first preset argument that the tool itself would refuse, whatever the others are. */
export const findGivenFault = (
  name: BuiltInToolName,
  given: Readonly<Record<string, unknown>>
): JsonFault | undefined => {
  const fields: Readonly<Record<string, Schema.ConstraintDecoder<unknown>>> = all[name].arguments.fields
  const part = Schema.Struct(
    Object.fromEntries(Object.entries(fields).filter(([field]) => Object.hasOwn(given, field)))
  )
  const read = Schema.decodeUnknownResult(part, argumentsAreStrict)(given)
  return Result.isFailure(read) ? schemaFaults(read.failure.issue)[0] : undefined
}

/** A server's tools as MCP lists them; the same for every caller. */
export const toolsOf = (server: BuiltInServer) =>
  builtInTools[server].map((name: BuiltInToolName) => ({
    name,
    description: all[name].description,
    inputSchema: inputSchemaOf(all[name].arguments)
  }))

const requiredReasoning = inputSchemaOf(Schema.Struct({ reasoning: Reasoning }))["properties"]

/**
 * Arguments schema for an agent that may suggest: changes require reasoning (S000-R23).
 *
 * **Details** Only shown to the model and not used for validation: text beside the call replaces missing reasoning.
 */
export const withReasoningRequired = (schema: JsonObject): JsonObject => {
  const { properties, required = [] } = schema as {
    readonly properties?: object
    readonly required?: ReadonlyArray<string>
  }
  return properties !== undefined && Object.hasOwn(properties, "reasoning")
    ? {
        ...schema,
        properties: { ...properties, ...(requiredReasoning as object) },
        required: [...required, "reasoning"]
      }
    : schema
}

type JsonObject = Readonly<Record<string, unknown>>

export const builtInServerNames: ReadonlyArray<BuiltInServer> = ["graph", "run", "tasks"]
