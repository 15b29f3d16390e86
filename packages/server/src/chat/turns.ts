/**
 * Follows a turn from its message until it pauses or ends.
 *
 * Followers read the log, so the same parts come after a crash, on another server, or long afterwards. Notifications only trigger reads.
 * Deltas of an unfinished answer are streamed at once if it is generated here; from another server they come through the delta relay, or
 * when they are stored. A disconnected follower ends no turn.
 */
import { type ChatEnding, chatStatuses } from "@tropism/domain/chat-ending"
import { type ReducedContext, asksAnew } from "@tropism/domain/context"
import {
  type ContextName,
  decodeEvent,
  type TextDeltaEvent,
  eventNumber,
  type LoggedEvent,
  type TurnFailure
} from "@tropism/domain/context-event"
import type { ChatStatus } from "@tropism/domain/conversation"
import { madeCall } from "@tropism/domain/defined-tool"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { pieceOf } from "@tropism/domain/piece"
import type { QuestionPayload } from "@tropism/domain/task"
import { Clock, Context, Effect, Layer, Option, Queue, Schema, Scope, Stream } from "effect"
import { Contexts } from "../contexts/contexts.ts"
import { TextDeltas } from "../contexts/text-deltas.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { type Topic, Notifier } from "../outbox/notifier.ts"
import { makeWaitBudget } from "../outbox/outages.ts"
import { QuestionTasks } from "../review/questions.ts"
import type { LiveRun } from "../runs/run-queries.ts"
import { Runs } from "../runs/run-store.ts"
import { chatLimits } from "./limits.ts"

export interface FollowTerms {
  /** How long to wait for the answer. */
  readonly waitMs?: number
  /** Whether the turn was already open before the event, which is then a result that it waited for. */
  readonly isTurnOpen?: boolean
  /** The last event before a question of the turn was answered: the parts end there, with the open questions. */
  readonly until?: number | undefined
}

export class Turns extends Context.Service<
  Turns,
  {
    /** The parts after an event of a context, until the turn that answers it pauses or ends; "working" at the time limit. */
    readonly follow: (
      projectId: ProjectId,
      name: ContextName,
      after: number,
      terms?: FollowTerms
    ) => Stream.Stream<TurnPart>
  }
>()("@tropism/server/chat/Turns") {
  static readonly layer = Layer.effect(
    Turns,
    Effect.gen(function* () {
      const database = yield* Database
      const contexts = yield* Contexts
      const words = yield* TextDeltas
      const questions = yield* QuestionTasks
      const runs = yield* Runs
      const notifier = yield* Notifier

      /** A queue that signals possible news, by kind. */
      const listen = Effect.fnUntraced(function* (projectId: ProjectId, name: ContextName) {
        const scope = yield* Effect.scope
        const bell = yield* Queue.sliding<void>(1)
        const news: News = { hasGrown: true, hasRested: true, pieces: [] }
        const hear = Effect.fnUntraced(function* (topic: Topic, note: () => void) {
          const mailbox = yield* notifier.listen(topic)
          yield* Queue.take(mailbox).pipe(
            Effect.andThen(
              Effect.sync(() => {
                note()
                Queue.offerUnsafe(bell, undefined)
              })
            ),
            Effect.forever,
            Effect.forkScoped
          )
        })
        yield* words.watch(projectId, name, (delta) => {
          addPiece(news.pieces, heardIn(delta))
          Queue.offerUnsafe(bell, undefined)
        })
        yield* hear(`context:${projectId}/${name}`, () => (news.hasGrown = true))
        const listened = new Set<string>()
        /** Subscribes to the run's end or pause. */
        const hearRun = ({ id }: LiveRun) =>
          listened.has(id)
            ? Effect.void
            : Effect.suspend(() => {
                listened.add(id)
                return Effect.provideService(
                  hear(`run:${id}`, () => (news.hasRested = true)),
                  Scope.Scope,
                  scope
                )
              })
        return { bell, news, hearRun }
      })

      const follow = (
        projectId: ProjectId,
        name: ContextName,
        after: number,
        { isTurnOpen = false, until = Number.POSITIVE_INFINITY, waitMs = chatLimits.waitMs }: FollowTerms = {}
      ) =>
        Effect.gen(function* () {
          const untilMs = (yield* Clock.currentTimeMillis) + waitMs
          const patiently = yield* makeWaitBudget(waitMs)
          const asking = <A>(effect: Effect.Effect<A, never, ProjectTransaction>) =>
            patiently(database.inProject(projectId, effect))
          const { bell, hearRun, news } = yield* listen(projectId, name)
          const standing = asking(runs.newestOn(name))
          /** Read from the log: the open question may be older than the message. */
          const openQuestions = (runId: RunId): Effect.Effect<ReadonlyArray<OpenQuestion>> =>
            until === Number.POSITIVE_INFINITY
              ? Effect.map(asking(questions.pending(runId)), (open) => open.map(({ payload }) => payload))
              : Effect.map(asking(contexts.loadUpTo(name, until)), questionsOf)

          /** The ending according to the log; a step with successors has ended nothing. */
          const endIn = Effect.fnUntraced(function* (hearing: Hearing) {
            if (!mayGoOn(hearing)) return hearing.end
            const { isAsked, workflow } = yield* asking(contexts.loadUpTo(name, hearing.number))
            if (Option.isNone(workflow)) return hearing.end
            return isAsked ? brokenInto : undefined
          })

          const wait = Effect.gen(function* () {
            const leftMs = untilMs - (yield* Clock.currentTimeMillis)
            if (leftMs <= 0) return false
            const rung = yield* Effect.timeoutOption(
              Queue.take(bell),
              Math.min(leftMs, chatLimits.sweepIntervalMs)
            )
            if (Option.isNone(rung)) news.hasGrown = news.hasRested = true
            return true
          })

          /** The run is read before the log, so the log contains at least everything that its state reflects. */
          const look = Effect.gen(function* () {
            if (!news.hasRested) return undefined
            news.hasRested = false
            const run = yield* standing
            if (run) yield* hearRun(run)
            return run
          })

          const read = Effect.fnUntraced(function* (start: Hearing) {
            const parts: Array<TurnPart> = []
            let hearing = start
            let isMore = news.hasGrown || news.pieces.some((piece) => piece.after > start.number)
            news.hasGrown = false
            while (isMore) {
              const page = yield* asking(contexts.read(name, hearing.number, chatLimits.pageEvents))
              for (const json of page) {
                if (isOver(hearing) || hearing.number >= until) break
                const heard = hearEvent(hearing, decodeEvent(json))
                hearing = heard.hearing
                parts.push(...heard.parts)
              }
              isMore = page.length === chatLimits.pageEvents && !isOver(hearing) && hearing.number < until
            }
            const ripe = news.pieces.filter((piece) => piece.after <= hearing.number)
            news.pieces = news.pieces.filter((piece) => piece.after > hearing.number)
            for (const piece of ripe) {
              const heard = hearPiece(hearing, piece)
              hearing = heard.hearing
              parts.push(...heard.parts)
            }
            return { hearing, parts }
          })

          const round = Effect.fnUntraced(function* (before: Hearing) {
            const isInTime = yield* wait
            const run = yield* look
            const { hearing, parts } = yield* read(before)
            const end = (yield* endIn(hearing)) ?? (hearing.number >= until ? askedEnd : run && endOfRun(run))
            if (end === undefined && isInTime) return [parts, Option.some(hearing)] as const
            const runId = hearing.runId ?? (yield* standing)?.id ?? null
            const rest: TurnEnd = end ?? { ending: "bound" }
            const asked = rest.ending === "question" && runId !== null ? yield* openQuestions(runId) : []
            return [[...parts, restOf(rest, runId, asked)], Option.none<Hearing>()] as const
          })

          Queue.offerUnsafe(bell, undefined)
          return Stream.paginate(hearingFrom(after, isTurnOpen), round)
        }).pipe(Stream.unwrap)

      return Turns.of({ follow })
    })
  )
}

/** The news since the last read. */
interface News {
  hasGrown: boolean
  hasRested: boolean
  pieces: Array<Piece>
}

/** A message between two steps restarts the workflow. */
const brokenInto: TurnEnd = { ending: "message" }

const askedEnd: TurnEnd = { ending: "question" }

const readQuestion = Schema.decodeUnknownOption(
  Schema.Struct({
    question: Schema.String,
    options: Schema.optionalKey(Schema.Array(Schema.String))
  })
)

/** The questions that waited for a person, up to the end of a folded log. */
const questionsOf = ({ pendingCalls, waitingCalls }: ReducedContext): ReadonlyArray<OpenQuestion> =>
  pendingCalls.flatMap((call) =>
    waitingCalls[call.id] === "person" ? Option.toArray(readQuestion(madeCall(call).arguments)) : []
  )

const heardIn = (delta: TextDeltaEvent): Piece => {
  const { after, place } = pieceOf(delta)
  return { after, first: place, last: place, at: delta.timestamp, text: delta.delta }
}

/** Joins consecutive deltas of one request until they are read, so they never exceed its answer. */
const addPiece = (pieces: Array<Piece>, piece: Piece): void => {
  const last = pieces.at(-1)
  if (last?.after === piece.after && last.last + 1 === piece.first)
    pieces[pieces.length - 1] = { ...last, last: piece.last, text: last.text + piece.text }
  else pieces.push(piece)
}

// Selects the events and deltas of the turn that answers a message.
//
// Pure: events and deltas in, parts out. The text streamed before an answer's event is a prefix of that answer: after a missing delta the
// rest comes when the answer is stored, or as much as exists of an aborted one. An answer aborted by a crash or a kill switch starts again.

/** Something that an agent says or does after the message. */
export type TurnPart =
  /** A delta of an answer. */
  | { readonly type: "words"; readonly text: string }
  /** Stored in the log. */
  | { readonly type: "event"; readonly event: LoggedEvent }
  | TurnRest

/** The last part. */
export interface TurnRest {
  readonly type: "rest"
  readonly status: ChatStatus
  readonly ending: ChatEnding
  /** Why the turn failed, where the log records it. */
  readonly failure: TurnFailure | null
  readonly runId: RunId | null
  /** The agent's open questions, oldest first, if it waits for them. */
  readonly questions: ReadonlyArray<OpenQuestion>
}

export type OpenQuestion = Pick<QuestionPayload, "question" | "options">

/** Consecutive deltas of an answer, and the event after which it was requested. */
export interface Piece {
  readonly after: number
  /** The number of the first delta in its answer, from 1. */
  readonly first: number
  readonly last: number
  /** The time of the first delta; another time means another attempt. */
  readonly at: string
  readonly text: string
}

/** How a turn ended; `failure` is that of the last part. */
interface TurnEnd {
  readonly ending: ChatEnding
  readonly failure?: TurnFailure | null
}

/** The state of following a log. */
export interface Hearing {
  /** The number of the last event. */
  readonly number: number
  /** Whether the answering turn has begun. */
  readonly isOurs: boolean
  /** Deltas requested before this event belong to a finished answer. */
  readonly since: number
  /** The text streamed of the current answer. */
  readonly words: string
  /** Its last delta. */
  readonly pieces: number
  /** The time of its first delta. */
  readonly begunAt: string | undefined
  /** Its turns may be consecutive steps of a workflow. */
  readonly isFlow: boolean
  /** Another message has arrived since the last step began. */
  readonly isAsked: boolean
  readonly runId: RunId | null
  readonly end: TurnEnd | undefined
}

/** No answer in progress. */
const untold = { words: "", pieces: 0, begunAt: undefined }

/** The state for a log up to an event; `isTurnOpen` means that the answering turn began before it. */
export const hearingFrom = (number: number, isTurnOpen: boolean): Hearing => ({
  number,
  isOurs: isTurnOpen,
  since: isTurnOpen ? 0 : number,
  ...untold,
  // The open turn's step was recorded before the event.
  isFlow: isTurnOpen,
  isAsked: false,
  runId: null,
  end: undefined
})

/** The new state and the parts to stream. */
export interface Heard {
  readonly hearing: Hearing
  readonly parts: ReadonlyArray<TurnPart>
}

/** Applies the next event. */
export const hearEvent = (before: Hearing, event: LoggedEvent): Heard => {
  const number = eventNumber(event.id)
  const hearing = { ...before, number, isAsked: before.isAsked || asksAnew(event) }
  if (event.type === "FlowStepStartedEvent")
    return { hearing: { ...hearing, isFlow: true, isAsked: false, end: undefined }, parts: [] }
  if (event.type === "AgentTurnStartedEvent")
    return {
      hearing: { ...hearing, isOurs: true, since: number, ...untold, end: undefined },
      parts: [{ type: "event", event }]
    }
  // Events between two steps belong to neither.
  if (!before.isOurs || before.end !== undefined) return { hearing, parts: [] }
  const told: TurnPart = { type: "event", event }
  const end = endOf(event)
  // Without a later message, the turn was interrupted by the message itself, and its own turn follows.
  if (end?.ending === "message" && !hearing.isAsked)
    return { hearing: { ...hearing, isOurs: false, since: number, ...untold }, parts: [told] }
  const said = saidIn(event)
  if (said === undefined) return { hearing: { ...hearing, end }, parts: [told] }
  const rest = restOfWords(before.words, said, event.type === "AssistantMessageEvent")
  const runId = "runId" in event && event.type === "AssistantMessageEvent" ? event.runId : before.runId
  return {
    hearing: { ...hearing, since: number, ...untold, runId, end },
    parts: [...(rest === "" ? [] : [{ type: "words", text: rest } as const]), told]
  }
}

/**
 * The rest of a stored answer.
 *
 * An aborted answer may have less stored than was streamed: text is stored at intervals, and of a long text only the beginning.
 */
const restOfWords = (told: string, said: string, isWhole: boolean): string => {
  if (said.startsWith(told)) return said.slice(told.length)
  // The first part turned out to be reasoning: all stored text was streamed after it.
  if (said !== "" && told.endsWith(said)) return ""
  return isWhole ? said : ""
}

/** The answer text that an event stores: whole, or as far as an aborted one got; undefined for other events. */
export const saidIn = (event: LoggedEvent): string | undefined => {
  if ("isUnknown" in event) return undefined
  switch (event.type) {
    case "AssistantMessageEvent":
      return event.content
    case "SoftStopEvent":
    case "AgentTurnInterruptedEvent":
      return event.partialText ?? ""
    default:
      return undefined
  }
}

/** Whether the turn is complete and a further step of its workflow may follow. */
export const mayGoOn = ({ end, isFlow }: Hearing): boolean => isFlow && end?.ending === "answered"

/** Whether nothing later belongs to the answer: the next step does, unless another message has arrived. */
export const isOver = (hearing: Hearing): boolean =>
  hearing.end !== undefined && (hearing.isAsked || !mayGoOn(hearing))

/** Applies a delta; the events before it were applied. */
export const hearPiece = (hearing: Hearing, { after, at, first, last, text }: Piece): Heard => {
  if (!hearing.isOurs || after < hearing.since) return { hearing, parts: [] }
  // A stopped and resumed run requests the answer again after the same event: the text restarts with its first delta.
  const isAnew = first === 1 && at !== hearing.begunAt
  if (!isAnew && first !== hearing.pieces + 1) return { hearing, parts: [] }
  const told = isAnew ? { words: text, begunAt: at } : { words: hearing.words + text }
  return { hearing: { ...hearing, ...told, pieces: last }, parts: [{ type: "words", text }] }
}

/** The ending that this event records; a crash records none. */
const endOf = (event: LoggedEvent): Hearing["end"] => {
  switch (event.type) {
    case "AgentTurnCompletedEvent":
      return { ending: "answered" }
    case "AgentTurnFailedEvent":
      return "error" in event ? { ending: "failed", failure: event.reason ?? null } : { ending: "failed" }
    case "AgentTurnInterruptedEvent":
      return "reason" in event && event.reason !== "crash" ? { ending: event.reason } : undefined
    default:
      return undefined
  }
}

/** The ending according to the run where the log has none; undefined while the run goes on. */
export const endOfRun = ({ isHeldBack, pauseReason, status }: LiveRun): Hearing["end"] => {
  switch (status) {
    case "completed":
      return { ending: "answered" }
    case "failed":
    case "skipped":
      return { ending: "failed" }
    case "cancelled":
      return { ending: "cancelled" }
    case "paused":
      // Sub-agents and clients deliver results within a time limit, and the turn continues by itself.
      return pauseReason === null || pauseReason === "subAgents" || pauseReason === "toolResult"
        ? undefined
        : { ending: pauseReason === "killSwitch" ? "stopped" : pauseReason }
    case "queued":
      return isHeldBack ? { ending: "stopped" } : undefined
    case "running":
      return undefined
  }
}

export const restOf = (
  { ending, failure = null }: TurnEnd,
  runId: RunId | null,
  questions: TurnRest["questions"] = []
): TurnRest => ({
  type: "rest",
  status: chatStatuses[ending],
  ending,
  failure,
  runId,
  questions
})
