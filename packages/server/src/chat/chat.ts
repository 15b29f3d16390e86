/**
 * Says something to an agent, and tells what it answers (S003-R25…R40).
 *
 * A message, the conversation it begins and the run that will answer it are one
 * transaction. The answer is read from the
 * log afterwards, by whichever server is asked; between two requests nothing is
 * held anywhere. To a question of the agent the next message is the answer.
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
import { Triggers } from "../reactions/triggers.ts"
import { QuestionTasks } from "../review/questions.ts"
import type { TriggerRefused } from "../runs/admission.ts"
import { type AnswerRefused, Answers } from "../runs/questions.ts"
import { Runs } from "../runs/run-store.ts"
import { Conversations } from "./conversations.ts"
import { restOf, type TurnPart, Turns, saidIn, type TurnRest } from "./turns.ts"

/** What somebody says. */
export interface Saying {
  readonly by: UserId
  readonly message: string
  /** Absent where it begins a conversation. */
  readonly conversationId: ConversationId | undefined
  /** With whom a conversation is begun; of one that goes on, with whom it is said to be. */
  readonly agentId: AgentId | undefined
}

/** What was said, and where its answer will stand. */
export type Said = {
  readonly conversationId: ConversationId
  readonly contextName: ContextName
  /** The number of the event that was kept. */
  readonly after: number
  /** It answers a question of a turn that was open. */
  readonly isTurnOpen: boolean
}

/** Why something is not said. */
export class SayingRefused extends Schema.TaggedError<SayingRefused>()("SayingRefused", {
  reason: Schema.Literals(["noConversation", "noAgent", "nobody", "otherAgent", "blank"]),
  detail: Schema.String
}) {}

export type NotSaid = SayingRefused | TriggerRefused | AnswerRefused | PromptFailed

/** What is told of an answer while it is made; the last is the whole. */
export type ChatPart =
  | { readonly type: "words"; readonly text: string }
  | { readonly type: "toolCall"; readonly call: CarriedCall }
  | { readonly type: "done"; readonly answer: ChatAnswer }

export class Chatting extends Context.Service<
  Chatting,
  {
    /** Keeps what somebody says, with the run that will answer it. */
    readonly say: (saying: Saying) => Effect.Effect<Said, NotSaid, ProjectTransaction>
    /** The answer to what was said, as it is made, waited for no longer than a time. */
    readonly answering: (projectId: ProjectId, said: Said, waitMs: number) => Stream.Stream<ChatPart>
    /** The whole answer, or what there is of it when the time is up. */
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
        // Whatever is not known of it, it was said: told of a fault, whoever has no key would say it again.
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

/** What is told of an answer of which nothing is known, but that it is being made. */
export const unheard = ({ conversationId }: Said): ChatAnswer =>
  chatAnswerOf(conversationId, nothingYet, restOf({ ending: "bound" }, null))

/** What is there because this transaction has just read or made its conversation. */
const held = <A, E, R>(
  reading: Effect.Effect<A | undefined, E, R>,
  name: ContextName
): Effect.Effect<A, E, R> =>
  Effect.flatMap(reading, (found) =>
    found === undefined
      ? Effect.die(new Error(`The context ${name} of a conversation is gone`))
      : Effect.succeed(found)
  )

/** What a part of a turn adds to the answer, and what is told of it. */
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

// What a person is told of the turn that answers: the words, what the agent did, how it ended.
//
// A fold of the turn's events and nothing else, so the same answer is told
// whoever asks for it again. Friendly sentences are made at its end and are kept
// nowhere.

/** What of an answer is there so far. */
interface AnswerSoFar {
  /** What the agent said last. */
  readonly said: string
  /** Why that is not whole; undefined where it is. */
  readonly finishReason: CutReason | undefined
  readonly calls: ReadonlyArray<CarriedCall>
  /** Those of them since the agent's last words. */
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

// Brings words into a context: to a question that waits for them they are the answer, else an agent's turn answers them.
//
// One way for every door through which a person speaks in a context of their own.
// The run is held before the log, as whoever else answers holds them. It knows
// neither conversations nor keys.

/** What somebody says. */
export interface Words {
  readonly content: string
  /** The event that begins a turn, where no question waits. */
  readonly event: NewEvent
  /** What is kept right before it. */
  readonly before?: Effect.Effect<ReadonlyArray<NewEvent>, never, ProjectTransaction>
}

/** Where words stand in a log. */
export interface Spoken {
  /** The number of the event that has them; the answer comes behind. */
  readonly number: number
  /** They answer a question of a turn that was open. */
  readonly isAnswer: boolean
}

export class Speaking extends Context.Service<
  Speaking,
  {
    /** Keeps a person's words, with the run that answers them or goes on with them. */
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

      /** Brings words to the question that waits for them; false where none does. */
      const answer = Effect.fnUntraced(function* ({ name }: ContextHead, { content }: Words, by: UserId) {
        const resting = yield* runs.holdResting(name)
        const [question] = resting?.reason === "question" ? yield* questions.pending(resting.id) : []
        if (!resting || !question) return false
        yield* answers.give({ id: resting.id, contextName: name }, content, question.id, by)
        return true
      })

      const begin = (context: ContextHead, { before = nothing, event }: Words, by: UserId) =>
        // Behind the run and right before the event: whoever works there takes the run's lock first, too.
        triggers.byEvent(
          context,
          { ...event, triggersAgentTurn: true },
          by,
          Effect.flatMap(before, (events) => Effect.asVoid(contexts.append(context.name, events)))
        )

      const say = Effect.fn("Speaking.say")(function* (context: ContextHead, words: Words, by: UserId) {
        const isAnswer = yield* answer(context, words, by)
        if (!isAnswer) yield* begin(context, words, by)
        // The log is held since it was written, so its end is what was said.
        const { lastNumber } = yield* contexts.lock(context.name)
        const spoken: Spoken = { number: lastNumber, isAnswer }
        return spoken
      })

      return Speaking.of({ say })
    })
  )
}

const nothing = Effect.succeed<ReadonlyArray<NewEvent>>([])

// What was said in a conversation, a page at a time.
//
// Read out of the log from the place of the page on, so a page costs what is on
// it and not what the conversation has grown to.

/** A message in the list, and where the list goes on behind it. */
export interface ListedMessage {
  readonly item: ConversationMessage
  readonly place: string
}

/** What a place looks like: after which event, past how many messages. */
export const messagePlaces = /^\d{1,9}\.\d{1,6}$/

export class Messages extends Context.Service<
  Messages,
  {
    /** Messages behind a place, the oldest first; what an agent has done and said nothing of yet comes last. */
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
