/**
 * Words that come with all that was said before them, as programs say them that keep their conversations themselves.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * Each request begins a context of its own, unless it names the one that it goes
 * on in. Such a context belongs to whoever spoke and is nobody's conversation: no
 * list of conversations has it, and its log stays as the log of any run does.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Attachment } from "@tropism/domain/attachment"
import { ContextName, type FileAttachmentEvent, type NewEvent } from "@tropism/domain/context-event"
import type { LlmConfig } from "@tropism/domain/context-config"
import type { GivenMessage } from "@tropism/domain/given-history"
import { ConversationId, type UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { type ContextHead, Contexts } from "../agent/contexts.ts"
import type { PromptFailed } from "../agent/template.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { ContextBeginnings } from "../dispatch/context-beginnings.ts"
import { Triggers } from "../dispatch/triggers.ts"
import { Ids } from "../ids.ts"
import type { TriggerRefused } from "../run/admission.ts"
import { type AnswerRefused, Answers } from "../run/questions.ts"
import { Runs } from "../run/runs.ts"
import { QuestionTasks } from "../task/question-tasks.ts"
import { Conversations } from "./conversations.ts"

/** A file that comes with words. */
export interface SaidFile extends Attachment {
  readonly fileName: string | null
  readonly source: FileAttachmentEvent["source"]
}

/** What is said now, and how the agent shall answer. */
export interface Saying {
  readonly content: string
  readonly files: ReadonlyArray<SaidFile>
  /** Which model answers from here on; null is as it is. */
  readonly settings: LlmConfig | null
}

/** What was said before, as a client tells it. */
export interface Brought {
  readonly instructions: string | null
  readonly messages: ReadonlyArray<GivenMessage>
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
    /** Says something to an agent behind what was said elsewhere, in a context that is the speaker's alone. */
    readonly begin: (
      agent: Agent,
      brought: Brought,
      saying: Saying,
      by: UserId
    ) => InProject<SaidIn, PromptFailed | TriggerRefused>
    /** The context of a conversation of this person, by its id or by the name that an answer told; undefined alike for what is somebody else's and what is not there. */
    readonly find: (conversation: string, of: UserId) => InProject<ContextHead | undefined>
    /** Says something where this person has spoken before; an agent that waits for an answer is answered. */
    readonly goOn: (
      context: ContextHead,
      saying: Saying,
      by: UserId
    ) => InProject<SaidIn, TriggerRefused | AnswerRefused>
  }
>()("@tropism/server/chat/Completions") {
  static readonly layer = Layer.effect(
    Completions,
    Effect.gen(function* () {
      const [answers, beginnings, contexts] = [yield* Answers, yield* ContextBeginnings, yield* Contexts]
      const questions = yield* QuestionTasks
      const [conversations, ids, runs, triggers] = [
        yield* Conversations,
        yield* Ids,
        yield* Runs,
        yield* Triggers
      ]

      /** Where the log ends after something was said under its lock. */
      const saidIn = Effect.fnUntraced(function* ({ agentId, name }: ContextHead, isAnswer: boolean) {
        const { lastNumber } = yield* contexts.lock(name)
        const said: SaidIn = { context: name, agentId, number: lastNumber, isAnswer }
        return said
      })

      const say = Effect.fnUntraced(function* (
        context: ContextHead,
        before: ReadonlyArray<NewEvent>,
        { content, files }: Saying,
        by: UserId
      ) {
        const shown = files.map(fileEvent)
        const words: ReadonlyArray<NewEvent> = content === "" ? [] : [{ type: "UserMessageEvent", content }]
        const events = [...before, ...shown, ...words]
        const last = events.at(-1)
        if (last === undefined) return yield* Effect.die(new Error("Nothing is said"))
        // Behind the run and right before the last: whoever works there takes the run's lock first, too.
        const keepOthers = Effect.asVoid(contexts.append(context.name, events.slice(0, -1)))
        yield* triggers.byEvent(context, { ...last, triggersAgentTurn: true }, by, keepOthers)
        return yield* saidIn(context, false)
      })

      const begin = Effect.fn("Completions.begin")(function* (
        agent: Agent,
        { instructions, messages }: Brought,
        saying: Saying,
        by: UserId
      ) {
        const name = ContextName.make(`${prefix}${yield* ids.next}`)
        // The name holds an id that nobody else has.
        const context = yield* Effect.catchTag(beginnings.open(name, agent, by), "ContextExists", Effect.die)
        const hasHistory = instructions !== null || messages.length > 0
        const before: ReadonlyArray<NewEvent> = [
          ...settingOf(saying.settings),
          ...(hasHistory ? [{ type: "HistoryGivenEvent", instructions, messages } as const] : [])
        ]
        return yield* say(context, before, saying, by)
      })

      const find = Effect.fn("Completions.find")(function* (conversation: string, of: UserId) {
        const known = isConversationId(conversation) ? yield* conversations.find(conversation, of) : undefined
        const name = known?.contextName ?? (conversation.startsWith(prefix) ? conversation : undefined)
        const context = name !== undefined && isContextName(name) ? yield* contexts.get(name) : undefined
        if (context?.owner !== of) return undefined
        if (known) yield* conversations.touch(known.id)
        return context
      })

      const goOn = Effect.fn("Completions.goOn")(function* (
        context: ContextHead,
        saying: Saying,
        by: UserId
      ) {
        // The run is held before the log, as whoever answers holds them.
        const resting = yield* runs.holdResting(context.name)
        const [question] = resting?.reason === "question" ? yield* questions.pending(resting.id) : []
        if (resting && question) {
          yield* answers.give({ id: resting.id, contextName: context.name }, saying.content, question.id, by)
          return yield* saidIn(context, true)
        }
        const { settings } = saying
        const isNew = settings !== null && !(yield* isSet(context.name, settings))
        return yield* say(context, isNew ? settingOf(settings) : [], saying, by)
      })

      /** Whether a context asks this model already. */
      const isSet = Effect.fnUntraced(function* (name: ContextName, wanted: LlmConfig) {
        const { config } = yield* contexts.load(name)
        return Option.exists(
          config.primary,
          (set) =>
            set.provider === wanted.provider &&
            set.name === wanted.name &&
            (set.temperature ?? null) === (wanted.temperature ?? null) &&
            (set.maxOutputTokens ?? null) === (wanted.maxOutputTokens ?? null)
        )
      })

      return Completions.of({ begin, find, goOn })
    })
  )
}

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
