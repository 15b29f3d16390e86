/**
 * Follows what comes of a message until the turn that answers it rests.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * Whoever follows reads the log: behind a crash, on another server, or long after
 * it was said, the same parts come. Wake-ups only say when to look. What is made
 * here of an answer that is not complete is told at once; an answer that another
 * server makes is told when it is kept, or as it is made where servers work together.
 * Nobody's leaving ends a turn.
 */
import type { ReducedContext } from "@tropism/domain/context"
import { type ContextName, decodeEvent, type TextDeltaEvent } from "@tropism/domain/context-event"
import { madeCall } from "@tropism/domain/defined-tool"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { pieceOf } from "@tropism/domain/piece"
import { Clock, Context, Effect, Layer, Option, Queue, Schema, Scope, Stream } from "effect"
import { Contexts } from "../agent/contexts.ts"
import { PassingWords } from "../agent/passing-words.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { makePatience } from "../outbox/patience.ts"
import { type Topic, WakeUps } from "../outbox/wake-ups.ts"
import type { StandingRun } from "../run/reading.ts"
import { Runs } from "../run/runs.ts"
import { QuestionTasks } from "../task/question-tasks.ts"
import { chatLimits } from "./chat-limits.ts"
import {
  endOfRun,
  hearEvent,
  type Hearing,
  hearingFrom,
  hearPiece,
  isOver,
  mayGoOn,
  type OpenQuestion,
  type Piece,
  restOf,
  type TurnEnd,
  type TurnPart
} from "./turn-parts.ts"

export type { OpenQuestion, TurnPart, TurnRest } from "./turn-parts.ts"

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
      const words = yield* PassingWords
      const questions = yield* QuestionTasks
      const runs = yield* Runs
      const wakeUps = yield* WakeUps

      /** What rings when there may be news, and which. */
      const listen = Effect.fnUntraced(function* (projectId: ProjectId, name: ContextName) {
        const scope = yield* Effect.scope
        const bell = yield* Queue.sliding<void>(1)
        const news: News = { hasGrown: true, hasRested: true, pieces: [] }
        const hear = Effect.fnUntraced(function* (topic: Topic, note: () => void) {
          const mailbox = yield* wakeUps.listen(topic)
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
        const hearRun = ({ id }: StandingRun) =>
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
          const patiently = yield* makePatience(waitMs)
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
