/**
 * What a person may put into a model's view through MCP: objects, agents, logs of runs, and the inbox.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Each has an address of its own. Bounded; what is missing, another project's or
 * another person's is told in the same words.
 */
import { ResourceNotFoundError } from "@modelcontextprotocol/server"
import { AgentId, ObjectId, RunId } from "@tropism/domain/ids"
import { Effect, Schema, Stream } from "effect"
import { Agents } from "../agent/agents.ts"
import { Database } from "../database/database.ts"
import { placePatterns } from "../graph/object-orders.ts"
import { Objects } from "../graph/objects.ts"
import { Runs } from "../run/runs.ts"
import { shownObject } from "../tool/graph-answers.ts"
import { bounded } from "../tool/wrong-calls.ts"
import { badParams } from "./door-server.ts"
import { mcpLimits } from "./mcp-limits.ts"
import type { Completing, McpCaller, McpPart, PartResources } from "./part.ts"
import { personOf } from "./people-tools.ts"
import { addressPatterns as patterns } from "./resource-addresses.ts"
import { ResourceUpdates } from "./resource-updates.ts"
import { makeReviewReading } from "./review-tools.ts"
import { makeRunReading } from "./run-tools.ts"
import { asJson } from "./told.ts"

const inbox = {
  uri: "tropism://inbox",
  name: "inbox",
  title: "What waits for people",
  description: "Suggestions, undos, questions and promotions that wait, newest first",
  mimeType: "application/json"
}

const templates = [
  {
    uriTemplate: "tropism://objects/{objectId}",
    name: "object",
    title: "An object of the graph",
    mimeType: "application/json"
  },
  {
    uriTemplate: "tropism://agents/{agent}",
    name: "agent",
    title: "An agent's definition, by name or id",
    mimeType: "application/json"
  },
  {
    uriTemplate: "tropism://runs/{runId}/log{?after}",
    name: "run log",
    title: "What happened in a run",
    description: "Events in their order; after is the number of the last event that you know",
    mimeType: "application/json"
  }
]

export const peopleResources = Effect.gen(function* () {
  const database = yield* Database
  const objects = yield* Objects
  const agents = yield* Agents
  const runs = yield* Runs
  const updates = yield* ResourceUpdates
  const { log } = yield* makeRunReading
  const { waiting } = yield* makeReviewReading

  /** Reads what an address of one of the kinds means; undefined where it means nothing. */
  const found = Effect.fnUntraced(function* (uri: string, caller: McpCaller) {
    if (uri === inbox.uri)
      return asJson(yield* waiting(personOf(caller), false, { limit: mcpLimits.resourceItems }))
    const object = patterns.objects.exec(uri)?.groups?.["id"]
    if (object !== undefined && Schema.is(ObjectId)(object)) {
      const one = yield* objects.get(object)
      return one && asJson(shownObject(one))
    }
    const agent = wordOf(patterns.agents.exec(uri)?.groups?.["id"])
    if (agent !== undefined) {
      const one = Schema.is(AgentId)(agent)
        ? yield* agents.get(agent)
        : (yield* agents.named([agent])).get(agent)
      return one && asJson(one)
    }
    const { after, id } = patterns.runs.exec(uri)?.groups ?? {}
    if (id === undefined || !Schema.is(RunId)(id)) return undefined
    const page = { after: Number(after ?? 0), limit: mcpLimits.resourceItems }
    return asJson(yield* log(id, personOf(caller), page))
  })

  const read =
    (caller: McpCaller): PartResources["read"] =>
    (uri) =>
      uri.startsWith("tropism://")
        ? database.inProject(caller.projectId, found(uri, caller)).pipe(
            Effect.catchTag("ToolFailed", () => Effect.succeed(undefined)),
            Effect.flatMap((value) =>
              value === undefined
                ? Effect.fail(new ResourceNotFoundError(uri))
                : Effect.succeed({
                    contents: [{ uri, mimeType: "application/json", text: JSON.stringify(bounded(value)) }]
                  })
            )
          )
        : Effect.succeed(undefined)

  /** The inbox and the newest objects; everything else has a template. */
  const list =
    ({ projectId }: McpCaller): PartResources["list"] =>
    (cursor) =>
      cursor !== undefined && !placePatterns.createdAt.test(cursor)
        ? Effect.fail(badParams("Invalid cursor"))
        : Effect.map(
            database.inProject(projectId, objects.list({}, "createdAt", cursor, mcpLimits.resourceItems + 1)),
            (listed) => {
              const shown = listed.slice(0, mcpLimits.resourceItems)
              const place = listed.length > shown.length ? shown.at(-1)?.place : undefined
              return {
                resources: [
                  ...(cursor === undefined ? [inbox] : []),
                  ...shown.map(({ object: { id, key, type } }) => ({
                    uri: `tropism://objects/${id}`,
                    name: key === null ? `${type} ${id}` : `${type} ${key}`,
                    mimeType: "application/json"
                  }))
                ],
                ...(place === undefined ? {} : { nextCursor: place })
              }
            }
          )

  /** Names of agents, and ids of the newest objects and runs, that begin as the value does. */
  const complete = ({ projectId }: McpCaller) =>
    Effect.fnUntraced(function* ({ argument: { name, value } }: Completing) {
      const limit = mcpLimits.completionValues
      const values: Readonly<Record<string, Effect.Effect<ReadonlyArray<string>>>> = {
        agent: Effect.map(database.inProject(projectId, agents.list(undefined, limit)), (all) =>
          all.map((one) => one.name)
        ),
        objectId: Effect.map(
          database.inProject(projectId, objects.list({}, "createdAt", undefined, limit)),
          (all) => all.map(({ object }) => object.id)
        ),
        runId: Effect.map(database.inProject(projectId, runs.list({}, undefined, limit)), (all) =>
          all.map((one) => one.id)
        )
      }
      const known = Object.hasOwn(values, name) ? values[name] : undefined
      return known && (yield* known).filter((one) => one.startsWith(value))
    })

  return {
    name: "resources",
    offerTo: (caller) => ({
      resources: {
        list: list(caller),
        templates,
        read: read(caller),
        subscribe: (uri, sessionId) => updates.subscribe(caller, sessionId, uri),
        unsubscribe: (uri, sessionId) => updates.unsubscribe(caller, sessionId, uri)
      },
      listen: ({ resourceSubscriptions }) =>
        resourceSubscriptions === undefined
          ? Effect.undefined
          : Effect.map(updates.listen(caller, resourceSubscriptions), ({ changes, heard }) => ({
              honored: { resourceSubscriptions: heard },
              tell: (notify) =>
                Stream.runForEach(changes, (uri) => notify("notifications/resources/updated", { uri }))
            })),
      complete: complete(caller)
    })
  } satisfies McpPart
})

/** A part of an address, as it was meant. */
const wordOf = (part: string | undefined): string | undefined => {
  if (part === undefined) return undefined
  const decoded = /%(?![0-9a-f]{2})/i.test(part) ? part : safelyDecoded(part)
  return decoded.length <= mcpLimits.toldNameMaxChars ? decoded : undefined
}

/** Percent signs that make no text stay as they are. */
const safelyDecoded = (part: string): string =>
  new URLSearchParams(`word=${part.replaceAll("+", "%2B")}`).get("word") ?? part
