/**
 * `tropism explain EVENT [AGENT]`: why an event did or did not wake the agents, or one of them.
 *
 * The place in the feed is what "tropism tail" shows; it is looked up first,
 * because the server knows an event by its id.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { GraphEvent } from "@tropism/domain/graph"
import { AgentId } from "@tropism/domain/ids"
import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { findAgent, readAgents } from "../agents-by-name.ts"
import { type Access, inProject, readPages } from "../access.ts"
import { type FoundEvent, findEvent } from "../events-by-place.ts"
import { eventActor, eventSubject } from "../event-text.ts"
import { type Fact, printFacts, printOr, printRecords } from "../print-records.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { limitFlag } from "./limit-flag.ts"

const subjectColumns = 60

export const explainCommand = Command.make(
  "explain",
  {
    event: Argument.String("event").pipe(
      Argument.withDescription(
        'A graph event\'s id or its position in the feed as shown by "tropism tail", or the id of an external event as shown by "tropism mcp-servers show"'
      )
    ),
    agent: Argument.String("agent").pipe(
      Argument.withDescription("The agent's name or id (default: all agents of the project)"),
      Argument.optional
    ),
    limit: limitFlag
  },
  (input) =>
    inProject((access) =>
      Effect.gen(function* () {
        const found = yield* findEvent(access, input.event)
        return yield* Option.isSome(input.agent)
          ? explainOne(access, found, input.agent.value)
          : explainAll(access, found, input.limit)
      })
    )
).pipe(
  Command.withDescription("Explain why an event did or did not trigger agents"),
  Command.withExamples([
    { command: "tropism explain 41", description: "Explain event 41 of the feed for all agents" },
    { command: "tropism explain 41 license-review", description: "Explain it for one agent" }
  ])
)

const explainOne = (access: Access, { id: eventId }: FoundEvent, reference: string) =>
  Effect.gen(function* () {
    const { paint } = yield* Screen
    // An agent that is deleted has no name any more that it could be found by; its id still says which.
    const asId = Schema.decodeUnknownOption(AgentId)(reference)
    const agentId = Option.isSome(asId) ? asId.value : (yield* findAgent(access, reference)).id
    const explanation = yield* access.client.explanations.explain({
      params: { ...access.params, agentId },
      query: { eventId }
    })
    const facts: ReadonlyArray<Fact> = [
      [
        "Agent",
        `${explanation.agentName}${explanation.agentVersion === null ? "" : ` v${explanation.agentVersion}`}`
      ],
      ["Event", eventId],
      ["Outcome", explanation.outcome, paintState(paint, explanation.outcome)],
      ["Rule", explanation.rule ?? ""],
      ["Reason", explanation.reason],
      [
        "Entry",
        explanation.entry === null ? "" : `${explanation.entry.status}, attempt ${explanation.entry.attempt}`
      ],
      ["Run", explanation.run?.id ?? ""]
    ]
    yield* printOr(explanation, printFacts(facts))
  })

const explainAll = (access: Access, { event, id: eventId }: FoundEvent, limit: number) =>
  Effect.gen(function* () {
    const { paint } = yield* Screen
    const { hasMore, items } = yield* readPages(
      (query) => access.client.explanations.list({ params: { ...access.params, eventId }, query }),
      limit
    )
    const head = event === undefined ? Effect.void : printEvent(access, event)
    yield* printOr(
      items,
      Effect.andThen(
        head,
        printRecords({
          records: items.toSorted(byOutcome),
          hasMore,
          nothing: "The project has no agents that the event could trigger.",
          columns: [
            { title: "AGENT", cell: (one) => one.agentName },
            { title: "OUTCOME", cell: (one) => one.outcome, paint: (one) => paintState(paint, one.outcome) },
            { title: "RULE", cell: (one) => one.rule ?? "", paint: () => paint.dim },
            { title: "REASON", shrinks: "end", cell: (one) => one.reason }
          ]
        })
      )
    )
  })

/** Who was woken stands above, then who waits, was busy or was refused. */
const outcomes: ReadonlyArray<Explanation["outcome"]> = ["woke", "waiting", "skipped", "refused"]

const byOutcome = (a: Explanation, b: Explanation): number =>
  outcomes.indexOf(a.outcome) - outcomes.indexOf(b.outcome) || (a.agentName < b.agentName ? -1 : 1)

/** One line of what happened, above what came of it. */
const printEvent = (access: Access, event: GraphEvent) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const names = new Map(
      (yield* readAgents(access)).map((agent): [string, string] => [agent.id, agent.name])
    )
    yield* screen.print(
      `${paintState(screen.paint, event.type)(event.type)} ${screen.paint.bold(eventSubject(event, subjectColumns))} ${screen.paint.dim(`by ${eventActor(event, (id) => names.get(id))}`)}`
    )
  })
