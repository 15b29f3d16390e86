/**
 * `tropism explain AGENT EVENT`: why an event did or did not wake an agent.
 */
import { GraphEventId } from "@tropism/domain/ids"
import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { findAgent } from "../agents-by-name.ts"
import { type Access, inProject } from "../access.ts"
import { failure } from "../failure.ts"
import { printFacts, printOr } from "../print-records.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"

export const explainCommand = Command.make(
  "explain",
  {
    agent: Argument.String("agent").pipe(Argument.withDescription("The agent's name or id")),
    event: Argument.String("event").pipe(
      Argument.withDescription('A graph event\'s id, or its place in the feed as "tropism tail" shows it')
    )
  },
  (input) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { paint } = yield* Screen
        const agent = yield* findAgent(access, input.agent)
        const eventId = yield* findEventId(access, input.event)
        const explanation = yield* access.client.agents.explain({
          params: { ...access.params, agentId: agent.id },
          query: { eventId }
        })
        yield* printOr(
          explanation,
          printFacts([
            ["Agent", agent.name],
            ["Event", eventId],
            ["Outcome", explanation.outcome, paintState(paint, explanation.outcome)],
            ["Reason", explanation.reason],
            ["Entry", explanation.entry?.status ?? ""],
            ["Run", explanation.entry?.runId ?? ""]
          ])
        )
      })
    )
).pipe(
  Command.withDescription("Say why an event did or did not wake an agent"),
  Command.withExamples([
    { command: "tropism explain license-review 41", description: "Ask about event 41 of the feed" }
  ])
)

const findEventId = (access: Access, reference: string) =>
  Effect.gen(function* () {
    const id = Schema.decodeUnknownOption(GraphEventId)(reference)
    if (Option.isSome(id)) return id.value
    if (!/^[1-9]\d{0,14}$/.test(reference)) {
      return yield* failure(
        `"${printable(reference)}" is neither an event's id nor its place in the feed. "tropism tail" shows both.`
      )
    }
    const { items } = yield* access.client.feed.events({
      params: access.params,
      query: { after: Number(reference) - 1, limit: 1 }
    })
    const found = items.find((event) => event.position === Number(reference))
    return found
      ? found.id
      : yield* failure(`The feed of project "${access.project.name}" has no event ${reference}.`)
  })
