/**
 * Words that come with all that was said before them, as programs say them that keep their conversations themselves.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * Each request begins a context of its own, unless it names the one that it goes
 * on in. Such a context belongs to whoever spoke and is nobody's conversation: no
 * list of conversations has it, and its log is forgotten a month after the last
 * word in it.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Attachment } from "@tropism/domain/attachment"
import type { ReducedContext } from "@tropism/domain/context"
import { ContextName, type FileAttachmentEvent, type NewEvent } from "@tropism/domain/context-event"
import type { LlmConfig } from "@tropism/domain/context-config"
import type { GivenMessage } from "@tropism/domain/given-history"
import { questionsText } from "@tropism/domain/chat-sentences"
import { isSaidByUser, type Message } from "@tropism/domain/message"
import { ConversationId, type UserId } from "@tropism/domain/ids"
import { QuestionPayload } from "@tropism/domain/task"
import { Context, Effect, Layer, Option, Schema, Struct } from "effect"
import { type ContextHead, Contexts, helperPrefix } from "../agent/contexts.ts"
import type { PromptFailed } from "../agent/template.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { ContextBeginnings } from "../dispatch/context-beginnings.ts"
import { Ids } from "../ids.ts"
import type { TriggerRefused } from "../run/admission.ts"
import { AnswerRefused } from "../run/questions.ts"
import { QuestionTasks } from "../task/question-tasks.ts"
import { BroughtContexts } from "./brought-contexts.ts"
import { Conversations } from "./conversations.ts"
import { Speaking } from "./speaking.ts"

/** A file that comes with words. */
export interface SaidFile extends Attachment {
  readonly fileName: string | null
  readonly source: FileAttachmentEvent["source"]
}

/** What is said now, and how the agent shall answer. */
export interface Saying {
  readonly content: string
  readonly files: ReadonlyArray<SaidFile>
  /** A chat client says it for itself: it goes on nowhere, and no list has it. */
  readonly isHelper: boolean
  /** Which model answers from here on; null is as it is. */
  readonly settings: LlmConfig | null
}

/** What was said before, as a client tells it. */
export interface Brought {
  readonly instructions: string | null
  readonly messages: ReadonlyArray<GivenMessage>
}

/** The same for a conversation that goes on. */
export interface BroughtOn extends Brought {
  /** The instructions at the end of the system prompt that these ones replace. */
  readonly promptEnd: string | null
}

/** Where something was said; plain JSON, for it is kept under an Idempotency-Key. */
export type SaidIn = {
  readonly context: ContextName
  readonly agentId: Agent["id"]
  /** The number of the event that said it; its answer comes behind. */
  readonly number: number
  /** It answers what the agent has asked, in the turn that is open. */
  readonly isAnswer: boolean
}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Completions extends Context.Service<
  Completions,
  {
    /**
     * Says something to an agent behind what was said elsewhere, in a context that is the speaker's alone.
     *
     * **Details** Where what was said ends with a question of this agent that still waits for this person, it is the answer to that.
     */
    readonly begin: (
      agent: Agent,
      brought: Brought,
      saying: Saying,
      by: UserId
    ) => InProject<SaidIn, PromptFailed | TriggerRefused | AnswerRefused>
    /** The context of this name, where it is this person's; held, so that nobody forgets it or speaks in it meanwhile. */
    readonly hold: (name: ContextName, of: UserId) => InProject<ContextHead | undefined>
    /** A context of this person that begins with the log of another up to an event, and with what the agent asks there. */
    readonly branch: (from: ContextHead, at: number, agent: Agent) => InProject<ContextHead, PromptFailed>
    /** The context of a conversation of this person, by its id or by the name that an answer told; undefined alike for what is somebody else's and what is not there. */
    readonly find: (conversation: string, of: UserId) => InProject<ContextHead | undefined>
    /** Says something where this person has spoken before, after what the client brings; an agent that waits for an answer is answered. */
    readonly goOn: (
      context: ContextHead,
      saying: Saying,
      by: UserId,
      brought?: BroughtOn
    ) => InProject<SaidIn, TriggerRefused | AnswerRefused>
  }
>()("@tropism/server/chat/Completions") {
  static readonly layer = Layer.effect(
    Completions,
    Effect.gen(function* () {
      const beginnings = yield* ContextBeginnings
      const brought = yield* BroughtContexts
      const contexts = yield* Contexts
      const conversations = yield* Conversations
      const ids = yield* Ids
      const speaking = yield* Speaking
      const tasks = yield* QuestionTasks

      const say = Effect.fnUntraced(function* (
        context: ContextHead,
        settings: InProject<ReadonlyArray<NewEvent>>,
        { content, files }: Saying,
        by: UserId
      ) {
        const shown = files.map(fileEvent)
        const words: ReadonlyArray<NewEvent> = content === "" ? [] : [{ type: "UserMessageEvent", content }]
        const events = [...shown, ...words]
        const event = events.at(-1)
        if (event === undefined) return yield* Effect.die(new Error("Nothing is said"))
        const before = Effect.map(settings, (set) => [...set, ...events.slice(0, -1)])
        const { isAnswer, number } = yield* speaking.say(context, { content, event, before }, by)
        if (isAnswer && files.length > 0)
          return yield* new AnswerRefused({
            reason: "noOption",
            detail: "The agent waits for an answer in words: send the file when it has gone on"
          })
        const said: SaidIn = { context: context.name, agentId: context.agentId, number, isAnswer }
        return said
      })

      const find = Effect.fn("Completions.find")(function* (conversation: string, of: UserId) {
        const known = isConversationId(conversation) ? yield* conversations.find(conversation, of) : undefined
        const name = known?.contextName ?? (conversation.startsWith(prefix) ? conversation : undefined)
        const context = name !== undefined && isContextName(name) ? yield* contexts.get(name) : undefined
        if (context?.owner !== of) return undefined
        if (known) yield* conversations.touch(known.id)
        else if (!(yield* brought.hold(context.name, true))) return undefined
        return context
      })

      const hold = Effect.fn("Completions.hold")(function* (name: ContextName, of: UserId) {
        const isKept = yield* brought.hold(name, true)
        const conversation = yield* conversations.hold(name, true)
        const context = yield* contexts.get(name)
        return isKept && context?.owner === of && conversation?.isDeleted !== true ? context : undefined
      })

      const branch = Effect.fn("Completions.branch")(function* (from: ContextHead, at: number, agent: Agent) {
        const name = ContextName.make(`${prefix}${yield* ids.next}`)
        // The name is new, and the place was read from the log that is held.
        const context = yield* Effect.catchTags(beginnings.fork(name, agent, { from, at }), {
          ContextExists: Effect.die,
          ForkRefused: Effect.die
        })
        yield* brought.keep(name)
        // The call that asked has ended with its turn: what it asked stands before the next words, which may answer it.
        const content = questionsText(questionsIn(yield* contexts.loadUpTo(from.name, at)))
        if (content === "") return context
        const asked: NewEvent = {
          type: "HistoryGivenEvent",
          instructions: null,
          messages: [{ role: "assistant", content }]
        }
        const { length } = yield* contexts.append(name, [asked])
        return { ...context, eventCount: context.eventCount + length }
      })

      const goOn = Effect.fn("Completions.goOn")(
        (context: ContextHead, saying: Saying, by: UserId, more?: BroughtOn) =>
          say(
            context,
            Effect.map(
              Effect.all([newSetting(context.name, saying.settings), broughtOn(context.name, more)]),
              ([settings, given]) => [...settings, ...given]
            ),
            saying,
            by
          )
      )

      /** What a client brings to a conversation that goes on; what its system prompt has already is not repeated. */
      const broughtOn = Effect.fnUntraced(function* (name: ContextName, more: BroughtOn | undefined) {
        if (more === undefined) return []
        const prompt = Option.getOrElse((yield* contexts.load(name)).systemPrompt, () => "")
        const messages = more.messages.filter(
          ({ content, role }) => role !== "system" || !prompt.includes(content)
        )
        const isNew = more.instructions !== more.promptEnd
        const instructions = isNew ? more.instructions : null
        const replaces = isNew ? more.promptEnd : null
        const events: ReadonlyArray<NewEvent> =
          instructions === null && replaces === null && messages.length === 0
            ? []
            : [
                {
                  type: "HistoryGivenEvent",
                  instructions,
                  messages,
                  ...(replaces === null ? {} : { replaces })
                }
              ]
        return events
      })

      /** What sets the model of a context, where it asks another; tools that one message went without are back for the next. */
      const newSetting = Effect.fnUntraced(function* (name: ContextName, settings: LlmConfig | null) {
        const primary = Option.getOrUndefined((yield* contexts.load(name)).config.primary)
        if (settings !== null) return primary && isSame(primary, settings) ? [] : settingOf(settings)
        return primary?.toolChoice === "none" ? settingOf({ ...primary, toolChoice: null }) : []
      })

      /** The context in which the agent asked what the history ends with, and still waits: a client that names no conversation goes on there. */
      const askedIn = Effect.fnUntraced(function* (
        agent: Agent,
        messages: ReadonlyArray<GivenMessage>,
        by: UserId
      ) {
        const last = messages.findLastIndex(({ role }) => role !== "system")
        const answer = messages[last]
        const before = messages.slice(0, last).findLast(({ role }) => role === "user")
        if (answer?.role !== "assistant" || before === undefined) return undefined
        for (const { contextName, questions } of yield* tasks.asked(agent.id, by, prefix)) {
          if (!answer.content.trimEnd().endsWith(questionsText(questions).trimEnd())) continue
          const name = ContextName.make(contextName)
          const { messages: said } = yield* contexts.load(name)
          const words = said.findLast(isSaidByUser)
          if (words !== undefined && textOf(words) === before.content) return yield* hold(name, by)
        }
        return undefined
      })

      const begin = Effect.fn("Completions.begin")(function* (
        agent: Agent,
        { instructions, messages }: Brought,
        saying: Saying,
        by: UserId
      ) {
        const asked = saying.isHelper ? undefined : yield* askedIn(agent, messages, by)
        if (asked !== undefined) return yield* goOn(asked, saying, by)
        const name = ContextName.make(`${saying.isHelper ? helperPrefix : prefix}${yield* ids.next}`)
        // The name holds an id that nobody else has.
        const context = yield* Effect.catchTag(beginnings.open(name, agent, by), "ContextExists", Effect.die)
        yield* brought.keep(name)
        const hasHistory = instructions !== null || messages.length > 0
        const before: ReadonlyArray<NewEvent> = [
          ...settingOf(saying.settings),
          ...(hasHistory ? [{ type: "HistoryGivenEvent", instructions, messages } as const] : [])
        ]
        return yield* say(context, Effect.succeed(before), saying, by)
      })

      return Completions.of({ begin, hold, branch, find, goOn })
    })
  )
}

const isQuestion = Schema.is(QuestionPayload.mapFields(Struct.pick(["question", "options"])))

/** What an agent asks in a context and nobody has answered. */
const questionsIn = ({ pendingCalls, waitingCalls }: ReducedContext) =>
  pendingCalls.flatMap(({ arguments: asked, id, name }) =>
    name === "ask_user" && Object.hasOwn(waitingCalls, id) && isQuestion(asked) ? [asked] : []
  )

/** What a user said, without files. */
const textOf = ({ content }: Message): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")

const isSame = (set: LlmConfig, wanted: LlmConfig): boolean =>
  set.provider === wanted.provider &&
  set.name === wanted.name &&
  (set.temperature ?? null) === (wanted.temperature ?? null) &&
  (set.maxOutputTokens ?? null) === (wanted.maxOutputTokens ?? null) &&
  set.toolChoice === wanted.toolChoice

const prefix = "completion-"

const isConversationId = Schema.is(ConversationId)
const isContextName = Schema.is(ContextName)

const settingOf = (settings: LlmConfig | null): ReadonlyArray<NewEvent> =>
  settings === null ? [] : [{ type: "SetLlmConfigEvent", role: "primary", ...settings }]

const fileEvent = ({ digest, fileName, mimeType, sizeBytes, source, untrusted }: SaidFile): NewEvent => ({
  type: "FileAttachmentEvent",
  source,
  digest,
  fileName,
  mimeType,
  sizeBytes,
  ...(untrusted ? { untrusted: true } : {})
})
