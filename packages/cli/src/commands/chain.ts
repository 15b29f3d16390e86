/**
 * `tropism chain EVENT`: everything that came of one event, and what it has used.
 *
 * Each link stands as deep as it lies in the chain, so a loop is seen at once.
 * An event inside a chain stands for the whole of it.
 */
import type { Chain, ChainLink } from "@tropism/api/chains-api"
import type { GraphEvent } from "@tropism/domain/graph"
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { readAgents } from "../agents-by-name.ts"
import { type Access, inProject } from "../access.ts"
import { eventActor, eventSubject } from "../event-text.ts"
import { findEvent } from "../events-by-place.ts"
import { type Fact, noticeMore, printFacts, printOr } from "../print-records.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { cutEnd, printable } from "../terminal/text.ts"
import { limitFlag } from "./limit-flag.ts"

const subjectColumns = 60
const indent = "  "

export const chainCommand = Command.make(
  "chain",
  {
    event: Argument.String("event").pipe(
      Argument.withDescription(
        'An event\'s id, its position in the feed as shown by "tropism tail", or the id of the run that started the chain'
      )
    ),
    limit: limitFlag
  },
  ({ event: reference, limit }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { event, id } = yield* findEvent(access, reference)
        const chain = yield* readChain(access, event?.rootEventId ?? id, limit)
        yield* printOr(chain, printChain(access, chain))
        if (chain.nextCursor !== null) yield* noticeMore(`first ${chain.items.length} links`)
      })
    )
).pipe(
  Command.withShortDescription("Show everything that followed from an event"),
  Command.withDescription(
    "Show the chain of an event: everything that followed from it, and its usage and limits"
  ),
  Command.withExamples([
    { command: "tropism chain 41", description: "Show the chain of event 41 of the feed" }
  ])
)

/** Reads the head and as many links as are wanted, page by page. */
const readChain = (access: Access, rootEventId: Chain["rootEventId"], limit: number) =>
  Effect.gen(function* () {
    const params = { ...access.params, rootEventId }
    let chain: Chain = yield* access.client.chains.get({ params, query: { limit: Math.min(limit, 200) } })
    while (chain.nextCursor !== null && chain.items.length < limit) {
      const query = { cursor: chain.nextCursor, limit: Math.min(limit - chain.items.length, 200) }
      const next: Chain = yield* access.client.chains.get({ params, query })
      chain = { ...next, items: [...chain.items, ...next.items] }
    }
    return chain
  })

const printChain = (access: Access, chain: Chain) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const names = new Map(
      (yield* readAgents(access)).map((agent): [string, string] => [agent.id, agent.name])
    )
    yield* printFacts(factsOf(chain, names))
    const width = yield* screen.width
    const lines = chain.items.map((link) => lineOf(link, names))
    yield* screen.print(
      "",
      ...lines.map(({ depth, state, text }) => {
        const margin = `${indent.repeat(depth)}`
        const room = width === undefined ? Number.POSITIVE_INFINITY : width - margin.length - state.length - 1
        return `${margin}${paintState(screen.paint, state)(state)} ${cutEnd(printable(text), room)}`.trimEnd()
      })
    )
  })

const factsOf = (
  { limits, rootEvent, rootEventId, stops, use }: Chain,
  names: ReadonlyMap<string, string>
) => {
  const of = (max: number | null, unit = ""): string => (max === null ? "" : ` of ${unit}${max}`)
  const facts: ReadonlyArray<Fact> = [
    ["Root", rootEvent === null ? `run ${rootEventId}` : rootEventId],
    ["Depth", `${use.depth}${of(limits.maxDepth)}`],
    ["Runs", `${use.runs}${of(limits.maxRuns)}`],
    ["Tokens", `${use.inputTokens + use.outputTokens}${of(limits.maxTokens)}`],
    [
      "Cost",
      use.costUsd === 0 && limits.maxCostUsd === null ? "" : `$${use.costUsd}${of(limits.maxCostUsd, "$")}`
    ],
    ...stops.map((stop): Fact => ["Stopped", `${names.get(stop.agentId) ?? stop.agentId}: ${stop.reason}`])
  ]
  return facts
}

/** A link as its depth, its state and what there is to say of it. */
const lineOf = (link: ChainLink, names: ReadonlyMap<string, string>) => {
  switch (link.type) {
    case "event":
      return {
        depth: link.event.depth,
        state: link.event.type,
        text: `${eventText(link.event, names)}${link.undoneBy === null ? "" : `, undone by #${link.undoneBy.number}`}`
      }
    case "run": {
      const { agentName, errorMessage, status, summary } = link.run
      const said = errorMessage ?? summary ?? ""
      return {
        depth: link.run.depth,
        state: status,
        text: `run of ${agentName}${said === "" ? "" : `: ${said}`}`
      }
    }
    case "task":
      return {
        depth: link.task.depth,
        state: link.task.status,
        text: `task ${link.task.number}: ${link.task.title}`
      }
  }
}

const eventText = (event: GraphEvent, names: ReadonlyMap<string, string>): string =>
  `${eventSubject(event, subjectColumns)} by ${eventActor(event, (id) => names.get(id))}`
