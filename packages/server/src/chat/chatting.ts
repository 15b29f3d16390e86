/**
 * Says something to an agent, and tells what it answers (S003-R25…R40).
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * A message, the conversation it begins and the run that will answer it are one
 * transaction. The answer is read from the
 * log afterwards, by whichever server is asked; between two requests nothing is
 * held anywhere. To a question of the agent the next message is the answer.
 */
import { callOf, type CarriedCall } from "@tropism/domain/chat-calls"
import type { ChatAnswer, Conversation } from "@tropism/domain/conversation"
import { titleOf } from "@tropism/domain/conversation-title"
import type { ContextName } from "@tropism/domain/context-event"
import type { AgentId, ConversationId, ProjectId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { Agents } from "../agent/agents.ts"
import { TodoAssistants } from "../agent/todo-assistants.ts"
import { Contexts } from "../agent/contexts.ts"
import type { PromptFailed } from "../agent/template.ts"
import { CrashPoint } from "../crash-point.ts"
import { isPassing } from "../database/database-away.ts"
import type { ProjectTransaction } from "../database/database.ts"
import type { TriggerRefused } from "../run/admission.ts"
import type { AnswerRefused } from "../run/questions.ts"
import { type AnswerSoFar, chatAnswerOf, nothingYet, withEvent } from "./answering.ts"
import { Conversations } from "./conversations.ts"
import { Speaking } from "./speaking.ts"
import { restOf } from "./turn-parts.ts"
import { type TurnPart, Turns } from "./turns.ts"

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
