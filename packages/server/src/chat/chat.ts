/**
 * Sends a message to an agent and returns its answer (S003-R25…R40).
 *
 * **Invariant**: a message, the conversation that it starts and the run that will answer it are one transaction. The answer is read from
 * the log afterwards, by any server; nothing is kept between two requests. If the agent has asked a question, the next message answers it.
 */
import { callOf, type CarriedCall, shownCall, withCalls } from "@tropism/domain/chat-calls"
import { chatResponse } from "@tropism/domain/chat-sentences"
import {
  type ContextName,
  AssistantMessageEvent,
  type LoggedEvent,
  type NewEvent,
  decodeEvent
} from "@tropism/domain/context-event"
import {
  type ChatAnswer,
  type Conversation,
  type CutReason,
  isCutReason,
  type ConversationMessage
} from "@tropism/domain/conversation"
import { type PlacedMessage, readEvent, readingAfter, unsaid } from "@tropism/domain/conversation-reading"
import { titleOf } from "@tropism/domain/conversation-title"
import type { AgentId, ConversationId, ProjectId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { Agents } from "../agents/agents.ts"
import type { PromptFailed } from "../agents/template.ts"
import { TodoAssistants } from "../agents/todo-assistants.ts"
import { Contexts, type ContextHead } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { isPassing } from "../database/connection-errors.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { conversationLimits } from "../limits.ts"
import { Triggers } from "../reactions/manual-triggers.ts"
import { QuestionTasks } from "../review/questions.ts"
import type { TriggerRefused } from "../runs/admission.ts"
import { type AnswerRefused, Answers } from "../runs/questions.ts"
import { Runs } from "../runs/run-store.ts"
import { Conversations } from "./conversations.ts"
import { restOf, type TurnPart, Turns, saidIn, type TurnRest } from "./turns.ts"

/** A message to send. */
export interface Saying {
  readonly by: UserId
  readonly message: string
  /** Absent for a new conversation. */
  readonly conversationId: ConversationId | undefined
  /** The agent of a new conversation; for an existing one, the agent that the caller expects. */
  readonly agentId: AgentId | undefined
}

/** A sent message, and where its answer will be. */
export type Said = {
  readonly conversationId: ConversationId
  readonly contextName: ContextName
  /** The number of the stored event. */
  readonly after: number
  /** It answers a question of an open turn. */
  readonly isTurnOpen: boolean
}

/** Why a message was refused. */
export class SayingRefused extends Schema.TaggedError<SayingRefused>()("SayingRefused", {
  reason: Schema.Literals(["noConversation", "noAgent", "nobody", "otherAgent", "blank"]),
  detail: Schema.String
}) {}

export type NotSaid = SayingRefused | TriggerRefused | AnswerRefused | PromptFailed

/** A part of a streamed answer; the last is the whole answer. */
export type ChatPart =
  | { readonly type: "words"; readonly text: string }
  | { readonly type: "toolCall"; readonly call: CarriedCall }
  | { readonly type: "done"; readonly answer: ChatAnswer }

export class Chatting extends Context.Service<
  Chatting,
  {
    /** Stores a message with the run that will answer it. */
    readonly say: (saying: Saying) => Effect.Effect<Said, NotSaid, ProjectTransaction>
    /** Streams the answer, up to a time limit. */
    readonly answering: (projectId: ProjectId, said: Said, waitMs: number) => Stream.Stream<ChatPart>
    /** The whole answer, or what exists when the time is up. */
    readonly answer: (projectId: ProjectId, said: Said, waitMs: number) => Effect.Effect<ChatAnswer>
  }
>()("@tropism/server/chat/Chatting") {
  static readonly layer = Layer.effect(
    Chatting,
    Effect.gen(function* () {
      const agents = yield* Agents
      const assistants = yield* TodoAssistants
      const contexts = yield* Contexts
      const conversations = yield* Conversations
      const speaking = yield* Speaking
      const turns = yield* Turns

      const named = Effect.fnUntraced(function* (id: AgentId | undefined) {
        const agent = yield* id === undefined ? assistants.ensure : agents.get(id)
        if (agent) return agent
        return yield* id === undefined
          ? new SayingRefused({
              reason: "nobody",
              detail: "This project's TodoAssistant was deleted: say with whom, and name an agent by its id"
            })
          : new SayingRefused({ reason: "noAgent", detail: `There is no agent ${id}` })
      })

      const goOn = Effect.fnUntraced(function* (id: ConversationId, { agentId, by }: Saying) {
        const conversation = yield* conversations.find(id, by)
        if (!conversation)
          return yield* new SayingRefused({
            reason: "noConversation",
            detail: "There is no such conversation"
          })
        if (agentId !== undefined && agentId !== conversation.agentId)
          return yield* new SayingRefused({
            reason: "otherAgent",
            detail:
              "This conversation is with another agent: leave the agent out, or begin a new conversation"
          })
        yield* conversations.touch(id)
        return conversation
      })

      const keep = Effect.fnUntraced(function* ({ contextName, id }: Conversation, { by, message }: Saying) {
        const context = yield* held(contexts.get(contextName), contextName)
        const event = { type: "UserMessageEvent", content: message } as const
        const { isAnswer, number } = yield* speaking.say(context, { content: message, event }, by)
        const said: Said = { conversationId: id, contextName, after: number, isTurnOpen: isAnswer }
        return said
      })

      const say = Effect.fn("Chatting.say")(function* (saying: Saying) {
        const { by, conversationId, message } = saying
        if (message.trim() === "")
          return yield* new SayingRefused({
            reason: "blank",
            detail: "Say something: there are only blanks in it"
          })
        const conversation =
          conversationId === undefined
            ? yield* conversations.begin(yield* named(saying.agentId), titleOf(message), by)
            : yield* goOn(conversationId, saying)
        const said = yield* keep(conversation, saying)
        yield* CrashPoint.hit("chat.beforeCommit")
        return said
      })

      const answering = (
        projectId: ProjectId,
        { after, contextName, conversationId, isTurnOpen }: Said,
        waitMs: number
      ) =>
        turns.follow(projectId, contextName, after, { waitMs, isTurnOpen }).pipe(
          Stream.mapAccum(
            () => nothingYet,
            (soFar: AnswerSoFar, part: TurnPart) => toldOf(conversationId, soFar, part)
          )
        )

      const answer = Effect.fn("Chatting.answer")(function* (
        projectId: ProjectId,
        said: Said,
        waitMs: number
      ) {
        const told = Stream.runFold(
          answering(projectId, said, waitMs),
          (): ChatAnswer | undefined => undefined,
          (whole, part) => (part.type === "done" ? part.answer : whole)
        )
        // The message is stored even if its answer cannot be read now. A client without a key would send it again after an error, so
        // answer.
        const last = yield* Effect.catchDefect(told, (defect) =>
          isPassing(defect) ? Effect.succeed(unheard(said)) : Effect.die(defect)
        )
        return (
          last ??
          (yield* Effect.die(new Error(`What was said in ${said.contextName} was not followed to a rest`)))
        )
      })

      return Chatting.of({ say, answering, answer })
    })
  )
}

/** The answer when only its start is known. */
export const unheard = ({ conversationId }: Said): ChatAnswer =>
  chatAnswerOf(conversationId, nothingYet, restOf({ ending: "bound" }, null))

/** A value that exists because this transaction has read or made its conversation. */
const held = <A, E, R>(
  reading: Effect.Effect<A | undefined, E, R>,
  name: ContextName
): Effect.Effect<A, E, R> =>
  Effect.flatMap(reading, (found) =>
    found === undefined
      ? Effect.die(new Error(`The context ${name} of a conversation is gone`))
      : Effect.succeed(found)
  )

/** What a part of a turn adds to the answer, and what is streamed of it. */
const toldOf = (
  conversationId: ConversationId,
  soFar: AnswerSoFar,
  part: TurnPart
): readonly [AnswerSoFar, ReadonlyArray<ChatPart>] => {
  switch (part.type) {
    case "words":
      return [soFar, [part]]
    case "rest":
      return [soFar, [{ type: "done", answer: chatAnswerOf(conversationId, soFar, part) }]]
    case "event": {
      const now = withEvent(soFar, part.event)
      const call = callOf(now.calls, part.event)
      return [now, call ? [{ type: "toolCall", call }] : []]
    }
  }
}

// The answer as a person sees it: text, tool calls and ending.
//
// A pure fold of the turn's events, so every reader gets the same answer. Friendly sentences are made at the end and stored nowhere.

/** The answer so far. */
interface AnswerSoFar {
  /** The agent's last message. */
  readonly said: string
  /** Why it is incomplete; undefined where it is not. */
  readonly finishReason: CutReason | undefined
  readonly calls: ReadonlyArray<CarriedCall>
  /** The calls since the agent's last message. */
  readonly unspoken: ReadonlyArray<CarriedCall>
}

const nothingYet: AnswerSoFar = { said: "", finishReason: undefined, calls: [], unspoken: [] }

/** Adds an event of the turn. */
const withEvent = ({ calls, finishReason, said, unspoken }: AnswerSoFar, event: LoggedEvent): AnswerSoFar => {
  const words = saidIn(event) ?? ""
  const isAnswer = event instanceof AssistantMessageEvent
  return {
    said: isAnswer && event.continues ? said + words : words || said,
    finishReason: isAnswer
      ? isCutReason(event.finishReason)
        ? event.finishReason
        : undefined
      : finishReason,
    calls: withCalls(calls, event),
    unspoken: withCalls(words.trim() === "" ? unspoken : [], event)
  }
}

/** The whole answer. */
const chatAnswerOf = (
  conversationId: ConversationId,
  { calls, finishReason, said, unspoken }: AnswerSoFar,
  { ending, failure, questions, runId, status }: TurnRest
): ChatAnswer => {
  const toolCalls = calls.map(shownCall)
  return {
    conversationId,
    status,
    response: chatResponse({ ending, failure, said, finishReason, unspoken, question: questions[0] }),
    toolCalls,
    ...(finishReason === undefined ? {} : { finishReason }),
    runId,
    conversation_id: conversationId,
    tool_calls: toolCalls
  }
}

// Adds a person's message to a context: it answers a waiting question, otherwise it starts a turn.
//
// Shared by every endpoint through which a person writes to their own context. Lock order: the run before the log, as for every other
// answer. It knows neither conversations nor idempotency keys.

/** A person's message. */
export interface Words {
  readonly content: string
  /** The event that starts a turn, if no question waits. */
  readonly event: NewEvent
  /** Events to store right before it. */
  readonly before?: Effect.Effect<ReadonlyArray<NewEvent>, never, ProjectTransaction>
}

/** The position of a message in a log. */
export interface Spoken {
  /** The number of its event; the answer follows it. */
  readonly number: number
  /** It answers a question of an open turn. */
  readonly isAnswer: boolean
}

export class Speaking extends Context.Service<
  Speaking,
  {
    /** Stores a person's message, with the run that answers it or continues with it. */
    readonly say: (
      context: ContextHead,
      words: Words,
      by: UserId
    ) => Effect.Effect<Spoken, TriggerRefused | AnswerRefused, ProjectTransaction>
  }
>()("@tropism/server/chat/Speaking") {
  static readonly layer = Layer.effect(
    Speaking,
    Effect.gen(function* () {
      const contexts = yield* Contexts
      const triggers = yield* Triggers
      const runs = yield* Runs
      const questions = yield* QuestionTasks
      const answers = yield* Answers

      /** Delivers a message to the question that waits for it; false where there is none. */
      const answer = Effect.fnUntraced(function* ({ name }: ContextHead, { content }: Words, by: UserId) {
        const resting = yield* runs.holdResting(name)
        const [question] = resting?.reason === "question" ? yield* questions.pending(resting.id) : []
        if (!resting || !question) return false
        yield* answers.give({ id: resting.id, contextName: name }, content, question.id, by)
        return true
      })

      const begin = (context: ContextHead, { before = nothing, event }: Words, by: UserId) =>
        // After the run and right before the event: every writer takes the run's lock first.
        triggers.byEvent(
          context,
          { ...event, triggersAgentTurn: true },
          by,
          Effect.flatMap(before, (events) => Effect.asVoid(contexts.append(context.name, events)))
        )

      const say = Effect.fn("Speaking.say")(function* (context: ContextHead, words: Words, by: UserId) {
        const isAnswer = yield* answer(context, words, by)
        if (!isAnswer) yield* begin(context, words, by)
        // The log has been locked since the message was written, so its end is the message.
        const { lastNumber } = yield* contexts.lock(context.name)
        const spoken: Spoken = { number: lastNumber, isAnswer }
        return spoken
      })

      return Speaking.of({ say })
    })
  )
}

const nothing = Effect.succeed<ReadonlyArray<NewEvent>>([])

// Lists the messages of a conversation, page by page.
//
// Reads the log from the page's position on, so the cost depends on the page and not on the conversation.

/** A message in the list, and the position after it. */
export interface ListedMessage {
  readonly item: ConversationMessage
  readonly place: string
}

/** The format of a position: an event, and a count of messages after it. */
export const messagePlaces = /^\d{1,9}\.\d{1,6}$/

export class Messages extends Context.Service<
  Messages,
  {
    /** Messages after a position, oldest first; tool calls without a message yet come last. */
    readonly list: (
      name: ContextName,
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ListedMessage>, never, ProjectTransaction>
  }
>()("@tropism/server/chat/Messages") {
  static readonly layer = Layer.effect(
    Messages,
    Effect.gen(function* () {
      const contexts = yield* Contexts

      const list = Effect.fn("Messages.list")(function* (
        name: ContextName,
        after: string | undefined,
        limit: number
      ) {
        const [from = 0, past = 0] = (after ?? "").split(".").map(Number)
        const messages: Array<PlacedMessage> = []
        let reading = readingAfter(from)
        let next = from
        while (messages.length < past + limit) {
          const page = yield* contexts.read(name, next, conversationLimits.logPageEvents)
          for (const json of page) {
            const step = readEvent(reading, decodeEvent(json))
            if (step.told) messages.push(step.told)
            reading = step.reading
          }
          next += page.length
          if (page.length === conversationLimits.logPageEvents) continue
          messages.push(...[unsaid(reading)].flatMap((told) => told ?? []))
          break
        }
        return messages.slice(past, past + limit).map(toListed)
      })

      return Messages.of({ list })
    })
  )
}

const toListed = ({ after, message, past }: PlacedMessage): ListedMessage => ({
  item: message,
  place: `${after}.${past}`
})
