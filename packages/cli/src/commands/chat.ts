/**
 * `tropism chat`: a conversation with an agent, typed, piped, or from a script.
 *
 * It writes nothing but events into a context, so whatever it does can be done
 * by any other client, at the same time too.
 */
import { ContextName } from "@tropism/domain/context-event"
import { titleOf } from "@tropism/domain/conversation-title"
import type { Agent } from "@tropism/domain/agent"
import { Clock, Effect, FileSystem, Option, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { fileFlag } from "../file-word.ts"
import { type Access, inProject } from "../access.ts"
import { findAgent, readAgents } from "../agents-by-name.ts"
import { openConversation } from "../chat/conversation.ts"
import { feed, scriptEvents } from "../chat/feeding.ts"
import { helpLines, talk } from "../chat/talk.ts"
import { tellAnswers, tellJson, tellLive } from "../chat/telling.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { notice } from "../notice.ts"
import { JsonFlag } from "../settings.ts"
import { Keyboard } from "../terminal/keyboard.ts"
import { Screen } from "../terminal/screen.ts"
import { whenReady } from "../waiting-for-server.ts"
import { statusOf } from "@tropism/client/failure-sentence"

const flag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const chatCommand = Command.make(
  "chat",
  {
    context: Argument.String("context").pipe(
      Argument.withDescription("The conversation (default: a new one); created if it does not exist"),
      Argument.withSchema(ContextName),
      Argument.optional
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription(
        "The agent, by name or id (default: the conversation's agent, or TodoAssistant in a conversation of your own)"
      ),
      Flag.optional
    ),
    message: Flag.String("message").pipe(
      Flag.withAlias("m"),
      Flag.withDescription("Send this message, print the reply and exit"),
      Flag.optional
    ),
    lines: flag("lines", "Send each line of the input as its own message"),
    script: fileFlag("script").pipe(
      Flag.withMetavar("<file>"),
      Flag.withDescription(
        "Append the events of this file, one JSON object per line; - reads standard input"
      ),
      Flag.optional
    ),
    deltas: flag("deltas", "With --json: also print text deltas")
  },
  ({ agent, context, deltas, lines, message, script }) =>
    inProject((access) =>
      Effect.scoped(
        Effect.gen(function* () {
          const screen = yield* Screen
          const keyboard = yield* Keyboard
          const isJson = yield* JsonFlag
          const isTyped = keyboard.isTerminal && Option.isNone(message) && Option.isNone(script)
          const inputs = isTyped ? Stream.empty : yield* inputsOf({ lines, message, script })
          const found = yield* findContext(access, context, agent, message)
          const tell = isJson ? tellJson(screen, deltas) : isTyped ? tellLive(screen) : tellAnswers(screen)
          const conversation = yield* openConversation(access, found.name, found.agent, tell)
          if (isTyped) {
            if (!isJson) yield* screen.print(...greeting(found), "")
            return yield* talk(conversation, screen, keyboard)
          }
          if (found.isNew) yield* notice(`Continue with: tropism chat ${found.name}`)
          const listening = yield* keyboard.listen("interrupts")
          yield* feed(conversation, listening, inputs)
        })
      )
    )
).pipe(
  Command.withShortDescription("Chat with an agent"),
  Command.withDescription(`Chat with an agent. Commands in the terminal:\n${helpLines.join("\n")}`),
  Command.withExamples([
    { command: "tropism chat", description: "Chat with the TodoAssistant" },
    { command: "tropism chat --agent helper", description: "Start a conversation in the project" },
    {
      command: 'tropism chat desk -m "What is new?"',
      description:
        "Ask once; exit code 1 if the turn failed, 3 if the agent is waiting. The name of a new conversation is printed on standard error"
    },
    {
      command: "git log -5 | tropism chat --agent helper",
      description: "Send the whole input as one message"
    },
    {
      command: "tropism chat desk --script events.jsonl --json",
      description: "Read events and print the log, one JSON object per line"
    }
  ])
)

interface Said {
  readonly lines: boolean
  readonly message: Option.Option<string>
  readonly script: Option.Option<string>
}

/** What is to be said where nobody types it: messages, or the events of a script. */
const inputsOf = Effect.fnUntraced(function* ({ lines, message, script }: Said) {
  if (Option.isSome(message)) {
    if (Option.isSome(script))
      return yield* failure("Use either --message or --script, not both.", exitCodes.usage)
    return yield* oneMessage(message.value)
  }
  const text = yield* readText(Option.getOrElse(script, () => "-"))
  if (Option.isSome(script)) return scriptEvents(linesOf(text))
  if (!lines) return yield* oneMessage((yield* Stream.mkString(text)).trimEnd())
  return linesOf(text).pipe(
    Stream.filter((line) => line.trim() !== ""),
    Stream.orElseIfEmpty(() => Stream.fail(nothingToSay))
  )
})

const oneMessage = (text: string) =>
  text.trim() === "" ? Effect.fail(nothingToSay) : Effect.succeed(Stream.make(text))

const nothingToSay = failure("The message is empty.", exitCodes.usage)

/** The text of a file or of the input, as it comes. */
const readText = (path: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const stdio = yield* Stdio.Stdio
    if (path !== "-" && !(yield* Effect.isSuccess(files.access(path, { readable: true }))))
      return yield* failure(
        `File not found or not readable: ${path}. Give the path of a script.`,
        exitCodes.usage
      )
    const isFolder =
      path !== "-" &&
      (yield* Effect.match(files.stat(path), {
        onFailure: () => false,
        onSuccess: ({ type }) => type === "Directory"
      }))
    if (isFolder) return yield* failure(`${path} is a folder: give the path of a script.`, exitCodes.usage)
    const bytes = path === "-" ? stdio.stdin : files.stream(path)
    return Stream.decodeText(bytes).pipe(Stream.mapError(() => failure(`${path} cannot be read.`)))
  })

const linesOf = Stream.splitLines

interface Found {
  readonly name: ContextName
  readonly agent: Agent
  readonly isNew: boolean
}

const greeting = ({ agent, isNew, name }: Found): ReadonlyArray<string> => [
  `${isNew ? "A new conversation" : "Conversation"} ${name} with ${agent.name}. /help lists the commands; Ctrl-C interrupts, Ctrl-D exits.`
]

/** The context that is meant; made where there is none. */
const findContext = (
  access: Access,
  wanted: Option.Option<ContextName>,
  agent: Option.Option<string>,
  message: Option.Option<string>
) =>
  Effect.gen(function* () {
    const { url } = access.connection
    const existing = Option.isSome(wanted)
      ? yield* whenReady(
          url,
          access.client.contexts.get({ params: { ...access.params, name: wanted.value } })
        ).pipe(
          Effect.map(Option.some),
          Effect.catch((error) =>
            statusOf(error) === 404 ? Effect.succeed(Option.none()) : Effect.fail(error)
          )
        )
      : Option.none()
    const asked = Option.isSome(agent) ? yield* whenReady(url, findAgent(access, agent.value)) : undefined
    if (Option.isSome(existing)) {
      const { agentId, name } = existing.value
      const agents = yield* whenReady(url, readAgents(access))
      const known = agents.find(({ id }) => id === agentId)
      if (!known)
        return yield* failure(
          `The agent of ${name} was deleted. "tropism contexts fork ${name} NAME --agent AGENT" continues it with another agent.`
        )
      if (asked && asked.id !== agentId)
        return yield* failure(
          `${name} is a conversation with ${known.name}. "tropism contexts fork ${name} NAME --agent ${asked.name}" continues it with ${asked.name}.`
        )
      const found: Found = { name, agent: yield* enabled(known), isNew: false }
      return found
    }
    if (!asked) {
      if (Option.isNone(wanted)) return yield* beginWithAssistant(access, message)
      return yield* failure(`Context not found: ${wanted.value}. Name an agent with --agent to create it.`)
    }
    const able = yield* enabled(asked)
    const now = new Date(yield* Clock.currentTimeMillis).toISOString().replaceAll(/\D/g, "").slice(0, 17)
    const name = Option.getOrElse(wanted, () => ContextName.make(`chat-${asked.name.slice(0, 70)}-${now}`))
    yield* access.client.contexts.create({ params: access.params, payload: { name, agentId: asked.id } })
    const found: Found = { name, agent: able, isNew: true }
    return found
  })

/** A conversation of one's own with the assistant that a project comes with, called by what is said first. */
const beginWithAssistant = Effect.fnUntraced(function* (access: Access, message: Option.Option<string>) {
  const agents = yield* whenReady(access.connection.url, readAgents(access))
  const assistant = agents.find(({ name }) => name === "TodoAssistant")
  if (!assistant)
    return yield* failure("Name an agent with --agent, or a conversation: this project has no TodoAssistant.")
  const agent = yield* enabled(assistant)
  const { contextName: name } = yield* access.client.conversations.begin({
    params: access.params,
    payload: {
      agentId: agent.id,
      ...(Option.isSome(message) && message.value.trim() !== "" ? { title: titleOf(message.value) } : {})
    }
  })
  const found: Found = { name, agent, isNew: true }
  return found
})

/** Nobody answers for an agent that is disabled. */
const enabled = (agent: Agent) =>
  agent.enabled
    ? Effect.succeed(agent)
    : Effect.fail(
        failure(
          `${agent.name} is disabled and does not reply. Enable it with "tropism agents enable ${agent.name}".`
        )
      )
