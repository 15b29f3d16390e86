/**
 * `tropism conversations`: conversations of one's own, what was said and what agents answered.
 */
import { ConversationPatch } from "@tropism/api/chat-api"
import type { ChatToolCall, Conversation, ConversationMessage } from "@tropism/domain/conversation"
import { ConversationId } from "@tropism/domain/ids"
import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { fileFlag } from "../file-word.ts"
import { type Access, inProject, readPages } from "../access.ts"
import { findAgent, readAgents } from "../agents-by-name.ts"
import { shortId } from "../change-text.ts"
import { failure } from "../failure.ts"
import { limits } from "../limits.ts"
import { noticeMore, printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable, printableLines } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"
import { typed } from "../typed-input.ts"
import { placeOf, writeWholeFile } from "../whole-file.ts"
import { limitFlag } from "./limit-flag.ts"

const conversationArgument = Argument.String("conversation").pipe(
  Argument.withDescription("Your conversation: its id, the end of the id, or its title")
)

const list = Command.make(
  "conversations",
  {
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only conversations with this agent, by name or id"),
      Flag.optional
    ),
    limit: limitFlag
  },
  ({ agent, limit }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { paint } = yield* Screen
        const now = yield* Clock.currentTimeMillis
        const filter = Option.isSome(agent) ? { agentId: (yield* findAgent(access, agent.value)).id } : {}
        const { hasMore, items } = yield* readPages(
          (query) =>
            access.client.conversations.list({ params: access.params, query: { ...query, ...filter } }),
          limit
        )
        const agents = yield* readAgents(access)
        const nameOf = ({ agentId }: Conversation) =>
          agents.find(({ id }) => id === agentId)?.name ?? shortId(agentId)
        yield* printRecords({
          records: items,
          hasMore,
          nothing: "You have no conversations.",
          columns: [
            { title: "ID", cell: ({ id }) => shortId(id) },
            { title: "TITLE", cell: ({ title }) => title, shrinks: "end" },
            { title: "AGENT", cell: nameOf },
            {
              title: "LAST",
              align: "right",
              cell: ({ updatedAt }) => formatAge(updatedAt, now),
              paint: () => paint.dim
            }
          ]
        })
      })
    )
).pipe(
  Command.withShortDescription("List and show your conversations"),
  Command.withDescription(
    'List and show your conversations, newest first. "tropism chat" starts one; "tropism chat --agent" starts a context of the project, which "tropism contexts" lists'
  ),
  Command.withExamples([
    {
      command: "tropism conversations show Groceries",
      description: "Read it with its tool calls"
    },
    {
      command: "tropism conversations export Groceries -o groceries.json",
      description: "Save it to a file"
    }
  ])
)

const show = Command.make(
  "show",
  { conversation: conversationArgument, limit: limitFlag },
  ({ conversation: reference, limit }) =>
    withConversation(reference, (access, conversation) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const params = { ...access.params, conversationId: conversation.id }
        const { hasMore, items } = yield* readPages(
          (query) => access.client.conversations.messages({ params, query }),
          limit
        )
        const lines = items.flatMap((message) => messageLines(message, screen.paint.dim))
        yield* printOr(
          { ...conversation, messages: items },
          screen.print(`${printable(conversation.title)}`, "", ...lines)
        )
        if (hasMore) yield* noticeMore(`first ${items.length} messages`)
      })
    )
).pipe(Command.withDescription("Read a conversation, the oldest message first"))

const messageLines = (
  { content, role, toolCalls }: ConversationMessage,
  dim: (text: string) => string
): ReadonlyArray<string> => [
  ...toolCalls.map((call) => dim(callLine(call))),
  ...(content === "" ? [] : [`${role === "user" ? "> " : ""}${printableLines(content)}`]),
  ""
]

const callLine = ({ arguments: given, result, tool }: ChatToolCall): string =>
  `  ${printable(`${tool} ${JSON.stringify(given)} → ${result === null ? "…" : JSON.stringify(result)}`)}`

const rename = Command.make(
  "rename",
  {
    conversation: conversationArgument,
    title: Argument.String("title").pipe(Argument.withDescription("Its new title"))
  },
  ({ conversation: reference, title }) =>
    Effect.gen(function* () {
      const payload = yield* typed(ConversationPatch, { title: title.trim() })
      yield* withConversation(reference, ({ client, params }, { id }) =>
        Effect.gen(function* () {
          const screen = yield* Screen
          const renamed = yield* client.conversations.rename({
            params: { ...params, conversationId: id },
            headers: {},
            payload
          })
          yield* printOr(renamed, screen.print(`New title: ${printable(renamed.title)}`))
        })
      )
    })
).pipe(Command.withDescription("Rename a conversation"))

const remove = Command.make("delete", { conversation: conversationArgument }, ({ conversation: reference }) =>
  withConversation(reference, ({ client, params }, conversation) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      yield* client.conversations.delete({
        params: { ...params, conversationId: conversation.id },
        headers: {}
      })
      yield* printOr(conversation, screen.print(`Deleted ${printable(conversation.title)}.`))
    })
  )
).pipe(Command.withDescription("Delete a conversation; the agent's changes and runs are kept"))

const exportOne = Command.make(
  "export",
  {
    conversation: conversationArgument,
    output: fileFlag("output").pipe(
      Flag.withAlias("o"),
      Flag.withMetavar("<file>"),
      Flag.withDescription("Write it to this file (default: -, standard output)"),
      Flag.optional
    )
  },
  ({ conversation: reference, output }) =>
    withConversation(reference, ({ client, params }, { id, title }) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const place = yield* placeOf(Option.getOrElse(output, () => "-"))
        const document = yield* client.conversations.export({ params: { ...params, conversationId: id } })
        const text = JSON.stringify(document, null, 2)
        if (place.type === "output") return yield* screen.print(text)
        const count = document.messages.length
        yield* writeWholeFile({
          content: Stream.make(new TextEncoder().encode(`${text}\n`)),
          place
        })
        yield* printOr(
          { file: place.shown, messages: count },
          screen.print(`Wrote ${count} messages of ${printable(title)} to ${place.shown}.`)
        )
      })
    )
).pipe(
  Command.withDescription("Export a conversation as JSON, to standard output or a file"),
  Command.withShortDescription("Export a conversation as JSON")
)

const isConversationId = Schema.is(ConversationId)

/** Finds the conversation that is meant and does something with it. */
const withConversation = <A, E, R>(
  reference: string,
  act: (access: Access, conversation: Conversation) => Effect.Effect<A, E, R>
) =>
  inProject((access) =>
    Effect.flatMap(findConversation(access, reference), (conversation) => act(access, conversation))
  )

/** An id reaches also what one may only read; a title and the end of an id are of one's own. */
const findConversation = Effect.fnUntraced(function* ({ client, params }: Access, reference: string) {
  if (isConversationId(reference))
    return yield* client.conversations.get({ params: { ...params, conversationId: reference } })
  const { items } = yield* readPages(
    (query) => client.conversations.list({ params, query }),
    limits.conversationsLooked
  )
  const found = items.filter(
    ({ id, title }) => title === reference || (reference !== "" && id.endsWith(reference))
  )
  if (found.length === 1 && found[0]) return found[0]
  return yield* failure(
    found.length === 0
      ? `Conversation not found: ${printable(reference)}. "tropism conversations" lists them.`
      : `${found.length} of your conversations have this title. Use the end of the id: ${found.map(({ id }) => shortId(id)).join(", ")}`
  )
})

export const conversationsCommand = list.pipe(Command.withSubcommands([show, rename, remove, exportOne]))
