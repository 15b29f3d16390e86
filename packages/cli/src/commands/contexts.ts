/**
 * `tropism contexts`: the logs in which people and agents speak, and what can be done with one.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { ReplayDifference } from "@tropism/domain/replay"
import type { Context, ContextState } from "@tropism/api/contexts-api"
import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject, readPages } from "../access.ts"
import { findAgent, readAgents } from "../agents-by-name.ts"
import { shortId } from "../change-text.ts"
import { differenceLines } from "../difference-lines.ts"
import { failure } from "../failure.ts"
import { type Fact, printFacts, printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"
import { diffJson } from "@tropism/domain/json-diff"
import { compareCommand, comparisonCommand } from "./context-comparison.ts"
import { answerToolCommand, defineToolCommand } from "./client-tools.ts"
import { contextArgument, logCommand, tailCommand } from "./context-log.ts"
import { taintText } from "../taint-text.ts"
import { limitFlag } from "./limit-flag.ts"

const list = Command.make(
  "contexts",
  {
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only contexts of this agent, by name or id"),
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
          (query) => access.client.contexts.list({ params: access.params, query: { ...query, ...filter } }),
          limit
        )
        const nameOf = yield* agentNames(access)
        yield* printRecords({
          records: items,
          hasMore,
          nothing: "No contexts found.",
          columns: [
            { title: "CONTEXT", cell: ({ name }) => name, shrinks: "end" },
            { title: "AGENT", cell: nameOf },
            { title: "EVENTS", align: "right", cell: ({ eventCount }) => String(eventCount) },
            { title: "FORKED FROM", cell: forkText },
            {
              title: "TURN",
              cell: ({ isTurnOpen }) => (isTurnOpen ? "open" : ""),
              paint: () => paint.waiting
            },
            {
              title: "READ",
              cell: ({ taintedBy }) => (taintedBy.length === 0 ? "" : "untrusted"),
              paint: () => paint.bad
            },
            {
              title: "AGE",
              align: "right",
              cell: ({ createdAt }) => formatAge(createdAt, now),
              paint: () => paint.dim
            }
          ]
        })
      })
    )
).pipe(
  Command.withDescription("List, show and use contexts"),
  Command.withExamples([
    { command: "tropism contexts --agent helper", description: "List the conversations with an agent" },
    {
      command: "tropism contexts replay talk",
      description: "Exit code 1 if the replay does not match the log"
    }
  ])
)

const agentNames = (access: Access) =>
  Effect.map(readAgents(access), (agents) => {
    const names = new Map<string, string>(agents.map(({ id, name }) => [id, name]))
    return ({ agentId }: Context) => names.get(agentId) ?? shortId(agentId)
  })

const forkText = ({ forkedFrom }: Context): string =>
  forkedFrom === null ? "" : `${forkedFrom.name}:${forkedFrom.at}`

const show = Command.make("show", { context: contextArgument }, ({ context: name }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const params = { ...access.params, name }
      const context = yield* access.client.contexts.get({ params })
      const state = yield* access.client.contexts.state({ params })
      const agent = (yield* agentNames(access))(context)
      yield* printOr({ ...context, state }, printFacts(contextFacts(context, state, agent)))
    })
  )
).pipe(
  Command.withDescription("Show the state of a context: messages, turns and tokens"),
  Command.withShortDescription("Show the state of a context")
)

const contextFacts = (context: Context, state: ContextState, agent: string): ReadonlyArray<Fact> => {
  const { fallback, primary, reducer } = state.config
  const modelText = (model: typeof primary) => (model === null ? "" : `${model.provider}:${model.name}`)
  return [
    ["Context", context.name],
    ["Agent", agent],
    ["Forked from", forkText(context)],
    ["Untrusted", taintText(context.taintedBy)],
    ["Events", String(context.eventCount)],
    ["Turns", `${state.currentTurnNumber}${context.isTurnOpen ? ", the last one is open" : ""}`],
    ["Model", modelText(primary)],
    ["Fallback", modelText(fallback)],
    ["Reducer", reducer.type],
    [
      "Window",
      `${state.messages.length} messages, about ${state.promptTokens} tokens${state.droppedMessages === 0 ? "" : `; ${state.droppedMessages} older ones are outside the window`}`
    ],
    ["Summary", state.summary ?? ""],
    ["Waiting for", state.pendingCalls.map((call) => call.name).join(", ")]
  ]
}

const fork = Command.make(
  "fork",
  {
    context: contextArgument,
    name: Argument.String("name").pipe(
      Argument.withDescription("The name of the new context"),
      Argument.withSchema(ContextName)
    ),
    at: Flag.Int("at").pipe(
      Flag.withMetavar("<event>"),
      Flag.withDescription("The last event that both share (default: the last one)"),
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
      Flag.optional
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("The agent of the fork, by name or id (default: the same agent)"),
      Flag.optional
    ),
    message: Flag.String("message").pipe(
      Flag.withMetavar("<text>"),
      Flag.withDescription("Send this message in the fork; if it is refused, no fork is created"),
      Flag.optional
    )
  },
  ({ agent, at, context, message, name }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const forked = yield* access.client.contexts.fork({
          params: { ...access.params, name: context },
          payload: {
            name,
            at: Option.getOrNull(at),
            agentId: Option.isSome(agent) ? (yield* findAgent(access, agent.value)).id : null,
            message: Option.getOrNull(message)
          }
        })
        yield* printOr(
          forked,
          screen.print(
            `${forked.name} shares the events of ${context} up to ${forked.forkedFrom?.at}.`,
            ...(Option.isSome(message) ? [`Follow the reply: tropism contexts tail ${forked.name}`] : [])
          )
        )
      })
    )
).pipe(
  Command.withDescription("Fork a context at an event; nothing is copied"),
  Command.withExamples([
    {
      command: "tropism contexts fork talk what-if --at 12",
      description: "Fork after event 12"
    },
    {
      command: 'tropism contexts fork talk what-if --message "And in Spanish?"',
      description: "Fork and send a message"
    }
  ])
)

const interrupt = Command.make("interrupt", { context: contextArgument }, ({ context: name }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const later = yield* access.client.contexts.interrupt({ params: { ...access.params, name } })
      yield* later
        ? printOr({ name, isInterrupted: false, ...later }, screen.print(printable(later.detail)))
        : printOr({ name, isInterrupted: true }, screen.print(`The turn of ${name} is interrupted.`))
    })
  )
).pipe(
  Command.withDescription("Interrupt the current turn; its partial output stays in the log"),
  Command.withShortDescription("Interrupt the current turn")
)

const replay = Command.make("replay", { context: contextArgument }, ({ context: name }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const found = yield* access.client.contexts.replay({ params: { ...access.params, name } })
      const { engineEvents, events, firstDifference } = found
      yield* printOr(
        found,
        screen.print(
          `Replayed ${events} events of ${name}; written by the engine: ${engineEvents}.`,
          ...(firstDifference
            ? whereText(firstDifference, screen.paint)
            : ["The replay matches, byte for byte."])
        )
      )
      if (firstDifference) return yield* failure(`The log of ${name} does not match its replay.`)
    })
  )
).pipe(
  Command.withDescription(
    "Rebuild each event from the start of the log, without model or tool calls, and compare it with the log"
  ),
  Command.withShortDescription("Replay a log and show differences")
)

const whereText = (
  { detail, eventId, expected, found }: ReplayDifference,
  paint: Parameters<typeof differenceLines>[1]
): ReadonlyArray<string> => [
  `${eventId}: ${printable(detail)}.`,
  ...(expected === null ? [] : differenceLines(diffJson(expected, found), paint))
]

export const contextsCommand = list.pipe(
  Command.withSubcommands([
    show,
    logCommand,
    tailCommand,
    fork,
    interrupt,
    defineToolCommand,
    answerToolCommand,
    replay,
    compareCommand,
    comparisonCommand
  ])
)
