/**
 * Follows what comes of a message until the turn that answers it rests.
 *
 * Whoever follows reads the log: behind a crash, on another server, or long after
 * it was said, the same parts come. Wake-ups only say when to look. What is made
 * here of an answer that is not complete is told at once; an answer that another
 * server makes is told when it is kept, or as it is made where servers work together.
 * Nobody's leaving ends a turn.
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
  /** How long the answer is waited for. */
  readonly waitMs?: number
  /** The turn that answers was open before the event: what came is an outcome that it waited for. */
  readonly isTurnOpen?: boolean
  /** The last event before a question of the turn was answered: the parts end there, with the questions that waited. */
  readonly until?: number | undefined
}

export class Turns extends Context.Service<
  Turns,
  {
    /** What comes behind an event of a context, up to the rest of the turn that answers it; "working" at the bound of time. */
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

      /** What rings when there may be news, and which. */
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
        /** A run says when it has come to rest. */
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
          /** Read and not heard: a question that waits may have been asked before what is answered here. */
          const openQuestions = (runId: RunId): Effect.Effect<ReadonlyArray<OpenQuestion>> =>
            until === Number.POSITIVE_INFINITY
              ? Effect.map(asking(questions.pending(runId)), (open) => open.map(({ payload }) => payload))
              : Effect.map(asking(contexts.loadUpTo(name, until)), questionsOf)

          /** How the answer ended by what the log says; a step that others follow has ended nothing. */
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

          /** The run as it stood before the log is read: what it says the log may have said by then. */
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

/** What came since the last look. */
interface News {
  hasGrown: boolean
  hasRested: boolean
  pieces: Array<Piece>
}

/** Whoever speaks between two steps begins the workflow anew. */
const brokenInto: TurnEnd = { ending: "message" }

const askedEnd: TurnEnd = { ending: "question" }

const readQuestion = Schema.decodeUnknownOption(
  Schema.Struct({
    question: Schema.String,
    options: Schema.optionalKey(Schema.Array(Schema.String))
  })
)

/** The questions that waited for a person where a log was folded up to. */
const questionsOf = ({ pendingCalls, waitingCalls }: ReducedContext): ReadonlyArray<OpenQuestion> =>
  pendingCalls.flatMap((call) =>
    waitingCalls[call.id] === "person" ? Option.toArray(readQuestion(madeCall(call).arguments)) : []
  )

const heardIn = (delta: TextDeltaEvent): Piece => {
  const { after, place } = pieceOf(delta)
  return { after, first: place, last: place, at: delta.timestamp, text: delta.delta }
}

/** Pieces of one request join while nobody takes them, so they are never more than its answer. */
const addPiece = (pieces: Array<Piece>, piece: Piece): void => {
  const last = pieces.at(-1)
  if (last?.after === piece.after && last.last + 1 === piece.first)
    pieces[pieces.length - 1] = { ...last, last: piece.last, text: last.text + piece.text }
  else pieces.push(piece)
}

// What of a log belongs to the turn that answers a message, told as parts.
//
// Pure: events and pieces in, parts out. The words told before an answer's event
// are that answer's words and nothing else, from the first on: behind a piece
// that was not heard the rest is told when the answer is kept, or what there is
// of one that was broken off. What a crash or a kill switch broke off begins anew.

/** Something that an agent says or does after something was said. */
export type TurnPart =
  /** A piece of an answer, as it is made. */
  | { readonly type: "words"; readonly text: string }
  /** Kept in the log. */
  | { readonly type: "event"; readonly event: LoggedEvent }
  | TurnRest

/** The last part. */
export interface TurnRest {
  readonly type: "rest"
  readonly status: ChatStatus
  readonly ending: ChatEnding
  /** What brought the turn down, where the log says so. */
  readonly failure: TurnFailure | null
  readonly runId: RunId | null
  /** What the agent has asked and nobody has answered, the oldest first, where it rests for that. */
  readonly questions: ReadonlyArray<OpenQuestion>
}

export type OpenQuestion = Pick<QuestionPayload, "question" | "options">

/** Pieces of an answer that follow one another, and the event after which it was asked for. */
export interface Piece {
  readonly after: number
  /** The place of the first among the pieces of its answer, from 1. */
  readonly first: number
  readonly last: number
  /** When the first was said: with another time it is of another attempt at the answer. */
  readonly at: string
  readonly text: string
}

/** How a turn ended; `failure` is that of a rest. */
interface TurnEnd {
  readonly ending: ChatEnding
  readonly failure?: TurnFailure | null
}

/** How far a log was heard. */
export interface Hearing {
  /** The number of the last event. */
  readonly number: number
  /** Whether the turn that answers has begun. */
  readonly isOurs: boolean
  /** Pieces that were asked for before this event are of an answer that is over. */
  readonly since: number
  /** What was told of the answer that is being made. */
  readonly words: string
  /** The last piece of it. */
  readonly pieces: number
  /** When the first piece of it was said. */
  readonly begunAt: string | undefined
  /** Its turns may be steps of a workflow, which follow one another. */
  readonly isFlow: boolean
  /** Somebody has asked for something more since the last step began. */
  readonly isAsked: boolean
  readonly runId: RunId | null
  readonly end: TurnEnd | undefined
}

/** Nothing of an answer. */
const untold = { words: "", pieces: 0, begunAt: undefined }

/** Of a log up to an event; `isTurnOpen` says that the turn which answers has begun before it. */
export const hearingFrom = (number: number, isTurnOpen: boolean): Hearing => ({
  number,
  isOurs: isTurnOpen,
  since: isTurnOpen ? 0 : number,
  ...untold,
  // What step the open turn is of lies before the event.
  isFlow: isTurnOpen,
  isAsked: false,
  runId: null,
  end: undefined
})

/** What was heard, and what of it is told. */
export interface Heard {
  readonly hearing: Hearing
  readonly parts: ReadonlyArray<TurnPart>
}

/** Hears the next event. */
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
  // What is kept between two steps is of none of them.
  if (!before.isOurs || before.end !== undefined) return { hearing, parts: [] }
  const told: TurnPart = { type: "event", event }
  const end = endOf(event)
  // What nobody has broken into since was broken into by the message itself, and its own turn is still to come.
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
 * What is left to tell of what is kept of an answer.
 *
 * **Details** Of one that was broken off less may be kept than was told: words are kept now and then, and of a long text the beginning.
 */
const restOfWords = (told: string, said: string, isWhole: boolean): string => {
  if (said.startsWith(told)) return said.slice(told.length)
  // What was told first turned out to be thinking: all that is kept was told after it.
  if (said !== "" && told.endsWith(said)) return ""
  return isWhole ? said : ""
}

/** What an event keeps of an answer: the whole, or as much as there was of one that was broken off; undefined where it is about none. */
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

/** Whether the turn is complete, and a further step of its workflow may follow. */
export const mayGoOn = ({ end, isFlow }: Hearing): boolean => isFlow && end?.ending === "answered"

/** Whether nothing behind belongs to the answer: behind a step the next does, unless somebody has asked for something more. */
export const isOver = (hearing: Hearing): boolean =>
  hearing.end !== undefined && (hearing.isAsked || !mayGoOn(hearing))

/** Hears a piece of an answer; the events before it were heard. */
export const hearPiece = (hearing: Hearing, { after, at, first, last, text }: Piece): Heard => {
  if (!hearing.isOurs || after < hearing.since) return { hearing, parts: [] }
  // Who was stopped and let go on asks anew behind the same event: the words begin anew with its first piece.
  const isAnew = first === 1 && at !== hearing.begunAt
  if (!isAnew && first !== hearing.pieces + 1) return { hearing, parts: [] }
  const told = isAnew ? { words: text, begunAt: at } : { words: hearing.words + text }
  return { hearing: { ...hearing, ...told, pieces: last }, parts: [{ type: "words", text }] }
}

/** How the turn ended, where this event ends it; a crash does not. */
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

/** How the answer ended where its run tells and the log does not; undefined while the run goes on. */
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
      // Sub-agents and clients bring their results within a time, and the turn goes on by itself.
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
