/**
 * One context that is spoken in: what is said goes out, its log comes in, and how far the agent is.
 *
 * The log is followed from where it ends now, across cut connections, with
 * nothing twice; others may speak in the same context meanwhile, and are heard.
 * A turn that is open already is read, too: it may wait for an answer.
 */
import type { EventInput } from "@tropism/api/contexts-api"
import type { Agent } from "@tropism/domain/agent"
import { type ContextEventId, type ContextName, eventNumber } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import { isQuestion } from "@tropism/domain/task"
import { statusOf } from "@tropism/client/failure-sentence"
import { Deferred, Effect, Option, Queue, Stream } from "effect"
import { type Access, readPages } from "../access.ts"
import { type FedEvent, followContext } from "../context-feed.ts"
import { type Failure, failure, requestFailure } from "../failure.ts"
import { limits } from "../limits.ts"
import { advance, isAtRest, type Progress, type Question, type TurnEnd, unread } from "./progress.ts"
import { whenReady } from "../waiting-for-server.ts"
import { type KnownRuns, runsIn } from "./runs-here.ts"

/** Where the agent stands once nothing more comes by itself. */
export type Rest =
  | TurnEnd
  | { readonly type: "question"; readonly question: Question }
  /** A run was cancelled before its first word, so the log says nothing of it. */
  | { readonly type: "cancelled"; readonly runId: RunId }

/** What a person is told where the run that was to answer was cancelled. */
export const cancelledSentence = (runId: RunId): string =>
  `The run was cancelled before it replied. "tropism runs show ${runId}" shows it.`

/** Opens a conversation; each event that comes is told, in order. */
export const openConversation = Effect.fnUntraced(function* (
  access: Access,
  name: ContextName,
  agent: Agent,
  tell: (fed: FedEvent) => Effect.Effect<void>
) {
  const { client, connection } = access
  const params = { ...access.params, name }
  const sentence = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.mapError(effect, (error) => requestFailure(error, connection.url))
  const state = yield* sentence(whenReady(connection.url, client.contexts.state({ params })))
  let progress: Progress = {
    isTurnOpen: state.agentTurnStartedAtEventId !== null,
    isDue: state.isTurnDue,
    questions: [],
    lastEnd: undefined,
    reading: unread
  }
  /** What was sent and has not come back yet. */
  let unheard = 0
  const lastNumber = state.nextEventNumber - 1
  const openedAt = state.agentTurnStartedAtEventId as ContextEventId | null
  const isCaughtUp = yield* Deferred.make<void>()
  const lost = yield* Deferred.make<never, Failure>()
  const news = yield* Queue.sliding<void>(1)
  yield* followContext(access, name, openedAt === null ? lastNumber : eventNumber(openedAt) - 1).pipe(
    Stream.runForEach((fed) =>
      Effect.gen(function* () {
        progress = advance(progress, fed.event)
        if (fed.number === lastNumber) yield* Deferred.succeed(isCaughtUp, undefined)
        if (fed.number !== undefined && fed.number <= lastNumber) return
        if (fed.event.type === "UserMessageEvent" || fed.event.triggersAgentTurn)
          unheard = Math.max(0, unheard - 1)
        yield* tell(fed)
        yield* Queue.offer(news, undefined)
      })
    ),
    Effect.catch((error) => Deferred.fail(lost, error)),
    Effect.forkScoped
  )
  if (openedAt !== null) yield* Effect.raceFirst(Deferred.await(isCaughtUp), Deferred.await(lost))

  const forget = (question: Question) =>
    Effect.sync(() => {
      const questions = progress.questions.filter(({ callId }) => callId !== question.callId)
      progress = { ...progress, questions }
    })

  const runs = runsIn(access, agent, name)

  /** Adds an event; answers whether it wants an answer. */
  const say = Effect.fnUntraced(function* (payload: EventInput) {
    // A tool's result lets the open turn go on and begins none.
    const wants =
      payload.type !== "ToolResultEvent" && (payload.triggersAgentTurn ?? payload.type === "UserMessageEvent")
    if (wants) {
      progress = { ...progress, lastEnd: undefined }
      unheard += 1
    }
    yield* sentence(client.contexts.addEvent({ params, payload })).pipe(
      Effect.tapError(() => Effect.sync(() => (unheard = Math.max(0, unheard - (wants ? 1 : 0)))))
    )
    return wants
  })

  const answer = Effect.fnUntraced(function* (question: Question, text: string) {
    const run = yield* sentence(runs.open)
    if (!run) {
      yield* forget(question)
      return yield* failure("This question no longer needs an answer.")
    }
    const { items } = yield* sentence(
      readPages(
        (query) =>
          client.tasks.list({
            params: access.params,
            query: { ...query, status: "pending", type: "question" }
          }),
        Infinity
      )
    )
    const task = items.find(
      (each) => isQuestion(each) && each.runId === run.id && each.payload.question === question.text
    )
    const payload = { answer: text, taskId: task?.id ?? null }
    yield* client.runs.answer({ params: { ...access.params, runId: run.id }, payload }).pipe(
      // Somebody else has answered; one that is refused for what it says leaves the question open.
      Effect.tapError((error) => (statusOf(error) === 409 ? forget(question) : Effect.void)),
      sentence
    )
    yield* forget(question)
    return true
  })

  /** The question that waits for an answer, if one does. */
  const question = () => progress.questions[0]

  /** Where the agent stands now; undefined while it is at work. */
  const restNow = (): Rest | undefined => {
    const asked = question()
    if (asked) return { type: "question", question: asked }
    return unheard === 0 && isAtRest(progress) ? progress.lastEnd : undefined
  }

  /** Ends the turn that is open, with what the agent has asked; answers why it goes on for now, where it does. */
  const interrupt = Effect.gen(function* () {
    const later = yield* sentence(client.contexts.interrupt({ params }))
    if (later) return later.detail
    progress = { ...progress, questions: [] }
    return undefined
  })

  /** A run that was cancelled before its first word leaves nothing in the log. */
  const wordlessEnd = Effect.fnUntraced(function* (known: KnownRuns | undefined) {
    const run = yield* runs.newest(known)
    return run?.status === "cancelled" && run.stepCount === 0
      ? ({ type: "cancelled", runId: run.id } satisfies Rest)
      : undefined
  })

  /** Between two turns of a workflow its run goes on; whether the server can still be reached is for the log to say. */
  const isRunOver = Effect.orElseSucceed(
    Effect.map(runs.open, (run) => run === undefined || run.status === "paused"),
    () => false
  )

  /** Waits until the agent is at rest; `known` are the runs before what it is asked now, where somebody knows them. */
  const rest = Effect.fnUntraced(function* (known: KnownRuns | undefined) {
    while (true) {
      const now = restNow()
      if (now && (now.type === "question" || (yield* isRunOver))) return now
      const heard = yield* Effect.timeoutOption(
        Effect.raceFirst(Queue.take(news), Deferred.await(lost)),
        limits.chatSilenceMs
      )
      if (Option.isSome(heard) || progress.isTurnOpen) continue
      const end = yield* Effect.orElseSucceed(wordlessEnd(known), () => undefined)
      if (end === undefined) continue
      progress = { ...progress, isDue: false }
      unheard = 0
      return end
    }
  })

  return {
    name,
    say,
    /** Says a message, or what answers a question; what wants an answer is waited for with `rest`. */
    speak: (text: string, asked: Question | undefined): Effect.Effect<boolean, Failure> =>
      asked ? answer(asked, text) : say({ type: "UserMessageEvent", content: text }),
    question,
    rest,
    /** The runs that there are now. */
    knownRuns: sentence(runs.known),
    /** Whether something comes by itself: an agent that has asked waits. */
    isAtWork: () => !question() && (progress.isTurnOpen || progress.isDue || unheard > 0),
    interrupt,
    state: sentence(client.contexts.state({ params })),
    fork: (as: ContextName) =>
      sentence(client.contexts.fork({ params, payload: { name: as, at: null, agentId: null } }))
  }
})

export type Conversation = Effect.Success<ReturnType<typeof openConversation>>
