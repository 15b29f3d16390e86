/**
 * Makes one tool call of a run: effect, record and context event together.
 *
 * One transaction, guarded by the attempt's token: either the effect, the
 * `tool_calls` row and the event that tells the model are all there, or none is;
 * and so is the context's taint, where the answer shows something untrusted.
 * A call that is made again finds its record and answers it. Everything that can
 * go wrong with a call is an answer to the model; only a lost attempt is a
 * failure here.
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
  const result = refusalText(refusal)
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

// Which calls of one answer are made side by side, and in which order the log has them.
//
// A call waits for those before it only where the order could matter. Calls begin in the order of the answer; an
// outcome waits for those before it, unless the call must not be made again: that outcome is recorded at once, since a
// server that dies would forget it. What the model reads is in its own order either way.

/** What decides for which calls another waits. */
export interface CallTraits {
  /** The foreign server that is called; null for a call that is answered here. */
  readonly server: string | null
  /** Whether it changes nothing. */
  readonly isReading: boolean
  /** Whether its answer may bring something untrusted. */
  readonly mayTaint: boolean
  /** Whether it is refused, or only suggested, after something untrusted was read. */
  readonly mindsTaint: boolean
}

/** What a call waits for on its way. */
export interface Place {
  /** Until the calls before it have begun. */
  readonly toBegin: Effect.Effect<void>
  /** It has begun, or will not. */
  readonly hasBegun: Effect.Effect<void>
  /** Until the calls before it are over. */
  readonly toEnd: Effect.Effect<void>
}

/** Whether a call is not made before an earlier one is over. */
export const mustWait = (earlier: CallTraits, later: CallTraits): boolean => {
  // What is written here takes milliseconds, and whatever comes after it may look at it.
  if (earlier.server === null && !earlier.isReading) return true
  if (earlier.mayTaint && later.mindsTaint) return true
  return earlier.server === later.server && !(earlier.isReading && later.isReading)
}

/** Makes calls in the order of the answer, as many at once as may be. */
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
      // Whoever waits for another keeps nobody from beginning.
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

// How a tool writes to the log of the run that calls it.
//
// Calls that are made side by side share one cursor: their transactions take turns, so none waits for the lock of
// another with a connection in hand, and each knows where the one before left the log.

/** Appends in one question where the log is as the caller last saw it, else under its lock. */
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

/** Where calls write to a log, one after the other. */
export interface LogCursor {
  /** Runs a transaction alone, where the log is thought to end; what it appended moves the end. */
  readonly write: <A extends Appended, E, R>(
    transaction: (end: LogEnd) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Runs alone what writes nothing. */
  readonly alone: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** All that was appended; nothing where something else stands between, or may: then the log is read again. */
  readonly appended: () => ReadonlyArray<LoggedEvent>
}

interface Appended {
  readonly appended: ReadonlyArray<LoggedEvent>
}

/** A cursor on a log that ends there; a turn neither begins nor ends in a call. */
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

// Every tool of this program's own servers, as MCP lists it.
//
// A built-in tool has one name among all built-in servers: the model sees it by
// that name alone.

export type BuiltInServer = keyof typeof builtInTools
type BuiltInToolName = keyof typeof graphTools | keyof typeof runTools | keyof typeof todoTools

const all = { ...graphTools, ...runTools, ...todoTools }

export const isBuiltInTool = (name: string): name is BuiltInToolName => Object.hasOwn(all, name)

/** The tools that only look. */
const looking: ReadonlySet<string> = new Set<BuiltInToolName>([
  "search_objects",
  "get_object",
  "neighbors",
  "list_agents",
  "list_tasks"
])

export const changesNothing = (tool: string): boolean => looking.has(tool)

/** The first of some of a tool's arguments that the tool itself would refuse, whatever the others are. */
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

/** The tools of a server as MCP lists them; they are the same for everybody. */
export const toolsOf = (server: BuiltInServer) =>
  builtInTools[server].map((name: BuiltInToolName) => ({
    name,
    description: all[name].description,
    inputSchema: inputSchemaOf(all[name].arguments)
  }))

const requiredReasoning = inputSchemaOf(Schema.Struct({ reasoning: Reasoning }))["properties"]

/**
 * The arguments of a tool as an agent is offered them that may suggest: those of a change require its reasoning (S000-R23).
 *
 * **Details** What is offered and not what is judged: the words beside a call stand for a reasoning that is missing.
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
