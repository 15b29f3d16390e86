/**
 * Stores messages of clients that send the whole conversation with each request.
 *
 * Each request starts a new context unless it names one to continue. Such a context is private to its caller and is no conversation: no
 * list shows it, and its log is purged a month after its last message.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Attachment } from "@tropism/domain/attachment"
import { questionsText } from "@tropism/domain/chat-sentences"
import type { ReducedContext } from "@tropism/domain/context"
import type { LlmConfig } from "@tropism/domain/context-config"
import { ContextName, type FileAttachmentEvent, type NewEvent } from "@tropism/domain/context-event"
import type { GivenMessage } from "@tropism/domain/given-history"
import { ConversationId, type UserId, type AgentId } from "@tropism/domain/ids"
import { isSaidByUser, type Message } from "@tropism/domain/message"
import { QuestionPayload } from "@tropism/domain/task"
import { Context, Effect, Layer, Option, Schema, Struct } from "effect"
import { SqlClient } from "effect/sql"
import type { PromptFailed } from "../agents/template.ts"
import { type ContextHead, Contexts, helperPrefix } from "../contexts/contexts.ts"
import { ProjectTransaction, onlyRow, orDie } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { ContextBeginnings } from "../reactions/new-contexts.ts"
import { QuestionTasks } from "../review/questions.ts"
import type { TriggerRefused } from "../runs/admission.ts"
import { AnswerRefused } from "../runs/questions.ts"
import { Speaking } from "./chat.ts"
import { BroughtContexts, Conversations } from "./conversations.ts"

/** A file of a message. */
export interface SaidFile extends Attachment {
  readonly fileName: string | null
  readonly source: FileAttachmentEvent["source"]
}

/** A message, and how the agent should answer it. */
export interface Saying {
  readonly content: string
  readonly files: ReadonlyArray<SaidFile>
  /** A chat client's own request: nothing continues it, and no list shows it. */
  readonly isHelper: boolean
  /** The model settings from here on; null keeps them. */
  readonly settings: LlmConfig | null
}

/** The history that a client sends. */
export interface Brought {
  readonly instructions: string | null
  readonly messages: ReadonlyArray<GivenMessage>
}

/** The same for a continued conversation. */
export interface BroughtOn extends Brought {
  /** The instructions at the end of the system prompt that these replace. */
  readonly promptEnd: string | null
}

/** The position of a message; plain JSON, because it is stored under an Idempotency-Key. */
export type SaidIn = {
  readonly context: ContextName
  readonly agentId: Agent["id"]
  /** The number of the message's event; its answer follows. */
  readonly number: number
  /** It answers a question of the agent in the open turn. */
  readonly isAnswer: boolean
}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Completions extends Context.Service<
  Completions,
  {
    /**
     * Sends a message with its history in a new context that only the caller sees.
     *
     * If the history ends with a question of this agent that still waits for this person, the message answers it.
     */
    readonly begin: (
      agent: Agent,
      brought: Brought,
      saying: Saying,
      by: UserId
    ) => InProject<SaidIn, PromptFailed | TriggerRefused | AnswerRefused>
    /** This person's context of this name, locked so that it is not purged or written to meanwhile. */
    readonly hold: (name: ContextName, of: UserId) => InProject<ContextHead | undefined>
    /** A context of this person that starts with another's log up to an event, and with the agent's question there. */
    readonly branch: (from: ContextHead, at: number, agent: Agent) => InProject<ContextHead, PromptFailed>
    /**
     * The context of this person's conversation, by its id or by the name in an answer; undefined alike if it is another person's or
     * missing.
     */
    readonly find: (conversation: string, of: UserId) => InProject<ContextHead | undefined>
    /** Sends a message in an existing context, after the client's history; answers a waiting question. */
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
        // The name is new, and the position was read from the locked log.
        const context = yield* Effect.catchTags(beginnings.fork(name, agent, { from, at }), {
          ContextExists: Effect.die,
          ForkRefused: Effect.die
        })
        yield* brought.keep(name)
        // The call that asked ended with its turn: its question comes before the next message, which may answer it.
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

      /** The new part of a client's history; what the system prompt already contains is not repeated. */
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

      /** The event that changes a context's model settings, if they differ; tools that one message disabled are enabled for the next. */
      const newSetting = Effect.fnUntraced(function* (name: ContextName, settings: LlmConfig | null) {
        const primary = Option.getOrUndefined((yield* contexts.load(name)).config.primary)
        if (settings !== null) return primary && isSame(primary, settings) ? [] : settingOf(settings)
        return primary?.toolChoice === "none" ? settingOf({ ...primary, toolChoice: null }) : []
      })

      /**
       * The context with the question that the history ends with, if it still waits: a client without a conversation id continues there.
       */
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
        // The name contains a fresh id.
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

/** The open questions of the agent in a context. */
const questionsIn = ({ pendingCalls, waitingCalls }: ReducedContext) =>
  pendingCalls.flatMap(({ arguments: asked, id, name }) =>
    name === "ask_user" && Object.hasOwn(waitingCalls, id) && isQuestion(asked) ? [asked] : []
  )

/** The text of a user's message, without files. */
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

// Stores the responses of OpenAI's Responses API: each is a position in the log of a private context.
//
// A row is written with its message and never changes, except that it can stop being stored. A response ends where the next one of its
// context begins, stored or not.

/** Request fields that the response repeats. */
export const ResponseTerms = Schema.Struct({
  model: Schema.String,
  background: Schema.Boolean,
  conversation: Schema.NullOr(Schema.String),
  instructions: Schema.NullOr(Schema.String),
  maxOutputTokens: Schema.NullOr(Schema.Int),
  metadata: Schema.Record(Schema.String, Schema.String),
  previousId: Schema.NullOr(Schema.String),
  isStored: Schema.Boolean,
  temperature: Schema.NullOr(Schema.Finite),
  toolChoice: Schema.Literals(["auto", "none"]),
  /** The end of the system prompt that the next response removes: instructions apply to one response. */
  promptEnd: Schema.NullOr(Schema.String)
})
export type ResponseTerms = typeof ResponseTerms.Type

/** A response's position and request. */
export interface PlacedResponse {
  readonly id: string
  readonly context: ContextName
  readonly agentId: AgentId
  /** The last event before the request. */
  readonly beginsAfter: number
  /** The event that the answer follows. */
  readonly number: number
  readonly isAnswer: boolean
  readonly terms: ResponseTerms
  readonly createdAt: Date
}

export class Responses extends Context.Service<
  Responses,
  {
    /** Stores a response in the transaction of its message; returns when that was. */
    readonly keep: (response: Omit<PlacedResponse, "agentId" | "createdAt">) => InProject<Date>
    /** A stored response of this person; undefined alike if it is another person's, deleted, purged or missing. */
    readonly find: (id: string, of: UserId) => InProject<PlacedResponse | undefined>
    /** The next response in its context, stored or not. */
    readonly next: (
      response: PlacedResponse
    ) => InProject<Pick<PlacedResponse, "beginsAfter" | "isAnswer"> | undefined>
    /** The instructions of a context's newest response at the end of its system prompt. */
    readonly lastPromptEnd: (context: ContextName) => InProject<string | null>
    /** Stops storing a response of this person; false where there is none. */
    readonly remove: (id: string, of: UserId) => InProject<boolean>
  }
>()("@tropism/server/chat/Responses") {
  static readonly layer = Layer.effect(
    Responses,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const keep = Effect.fn("Responses.keep")(function* ({
        beginsAfter,
        context,
        id,
        isAnswer,
        number,
        terms
      }: Omit<PlacedResponse, "agentId" | "createdAt">) {
        const { projectId } = yield* ProjectTransaction
        const row = yield* Effect.flatMap(
          sql<{ readonly createdAt: Date }>`
            insert into kb.responses (project_id, id, context_name, begins_after, number, is_answer, is_stored, terms)
            values (${projectId}, ${id}, ${context}, ${beginsAfter}, ${number}, ${isAnswer}, ${terms.isStored},
              ${JSON.stringify(terms)}::text::jsonb) returning created_at`,
          onlyRow
        )
        return row.createdAt
      }, orDie)

      /** The context's owner owns its responses; deleted and purged ones are missing. */
      const isOf = (of: UserId) => sql`
        response.is_stored and exists (
          select from kb.contexts context
          where context.project_id = response.project_id and context.name = response.context_name
            and context.owner = ${of} and context.forgotten_at is null)
        and not exists (
          select from kb.conversations conversation
          where conversation.project_id = response.project_id and conversation.context_name = response.context_name
            and conversation.deleted_at is not null)`

      const find = Effect.fn("Responses.find")(function* (id: string, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<Omit<PlacedResponse, "terms"> & { readonly terms: unknown }>`
          select response.id, response.context_name as context, context.agent_id, response.begins_after, response.number,
            response.is_answer, response.terms, response.created_at
          from kb.responses response
          join kb.contexts context on context.project_id = response.project_id and context.name = response.context_name
          where response.project_id = ${projectId} and response.id = ${id} and ${isOf(of)}`
        if (row === undefined) return undefined
        const found: PlacedResponse = { ...row, terms: yield* Effect.orDie(decodeTerms(row.terms)) }
        return found
      }, orDie)

      const next = Effect.fn("Responses.next")(function* ({ context, number }: PlacedResponse) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<Pick<PlacedResponse, "beginsAfter" | "isAnswer">>`
          select begins_after, is_answer from kb.responses
          where project_id = ${projectId} and context_name = ${context} and number > ${number}
          order by number limit 1`
        return row
      }, orDie)

      const lastPromptEnd = Effect.fn("Responses.lastPromptEnd")(function* (context: ContextName) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly promptEnd: string | null }>`
          select terms ->> 'promptEnd' as prompt_end from kb.responses
          where project_id = ${projectId} and context_name = ${context} order by number desc limit 1`
        return row?.promptEnd ?? null
      }, orDie)

      const remove = Effect.fn("Responses.remove")(function* (id: string, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          update kb.responses response set is_stored = false, 
            terms = terms || '{"metadata": {}, "instructions": null, "isStored": false}'::jsonb
          where response.project_id = ${projectId} and response.id = ${id} and ${isOf(of)} returning 1`
        return rows.length > 0
      }, orDie)

      return Responses.of({ keep, find, next, lastPromptEnd, remove })
    })
  )
}

const decodeTerms = Schema.decodeUnknownEffect(ResponseTerms)
