/**
 * What is told of another project to whoever has its ids: what is told of ids that nothing has.
 *
 * Every operation of both OpenAPI documents is asked; one that is new is asked, too,
 * and a new kind of id fails here until `furniture.ts` has one.
 */
import { Api } from "@tropism/api/api"
import { OpenAiApi } from "@tropism/api/openai-api"
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { documentedBy, type Operation } from "../testing/documented.ts"
import { fitting, nobody } from "../testing/fitting.ts"
import { furnish, type Furniture } from "../testing/furniture.ts"
import { isQuiet } from "../testing/context-words.ts"
import { ask as rowsOf } from "../testing/owner-rows.ts"
import { type Answer, eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const documents = [Api, OpenAiApi].map((api) => documentedBy(OpenApi.fromApi(api as typeof Api)))

const operations = documents.flatMap(({ document, operations: found }) =>
  found.map((operation) => ({ operation, schemas: document.components.schemas as Record<string, Json> }))
)

type Asked = (typeof operations)[number]

const decided = (taskId: string) => ({
  decision: "approve",
  tasks: [{ taskId, digest: "0".repeat(64) }]
})

/** Bodies whose form says less than the door asks. */
const bodies: Readonly<Record<string, Json>> = {
  "POST /agents/{agentId}/undo": { version: 1 },
  "POST /agents/{agentId}/batch-trigger": { objectIds: [nobody] },
  "POST /relationships": { type: "NEAR", fromId: nobody, toId: "00000000-0000-7000-8000-000000000001" },
  "POST /contexts": { name: "another", agentId: nobody },
  "POST /contexts/{name}/comparisons": {
    content: "Which?",
    variants: [
      { label: "a", content: "A?" },
      { label: "b", content: "B?" }
    ]
  },
  "POST /conversations": { agentId: nobody },
  "PATCH /tasks/{taskId}": { title: "Another" },
  "POST /tasks/decisions": decided(nobody)
}

const below = (path: string) => path.replace("/api/projects/{projectId}", "")

const bodyFor = ({ operation: { bodies: taken, method, path }, schemas }: Asked): Json => {
  const [first] = taken
  if (first === undefined) return undefined
  const [contentType, schema] = first
  if (contentType !== "application/json") return { contentType, body: "Words" }
  return { contentType, body: bodies[`${method} ${below(path)}`] ?? fitting(schema, schemas) }
}

/** Parameters that must be there, beside those that an address has. */
const queryFor = ({ parameters }: Operation): Record<string, string> =>
  Object.fromEntries(
    parameters
      .filter((each: Json) => each.in === "query" && each.required === true)
      .map(({ name, schema }) => [name, String(schema.enum?.[0] ?? nobody)])
  )

/** Asks an operation, with ids in the places that are named. */
const ask = (
  story: Story,
  asked: Asked,
  at: Furniture,
  query: Record<string, string> = {},
  more: Json = {}
) => {
  const { method, path } = asked.operation
  const address = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(at[name] ?? "1"))
  const sent = bodyFor(asked)
  const text = new URLSearchParams({ ...queryFor(asked.operation), ...query }).toString()
  return story.send(
    method,
    address + (text === "" ? "" : `?${text}`),
    sent === undefined || typeof sent.body === "string" ? sent?.body : { ...sent.body, ...more },
    sent === undefined ? {} : { "content-type": sent.contentType }
  )
}

/** All that an answer tells, with an id's place empty. */
const told = ({ body, headers, status }: Answer, ids: ReadonlyArray<string>) => {
  const words = JSON.stringify({
    status,
    body,
    headers: [...headers].filter(([name]) => name !== "date")
  })
  return ids.reduce((text, id) => text.replaceAll(id, "…"), words)
}

/** Ids of the same form and length that nothing has. */
const missing: Furniture = {
  userId: "ghost-member",
  name: "ghost-context",
  model: "ghost-agent",
  responseId: `resp_${"0".repeat(32)}`,
  digest: "0".repeat(64),
  comparisonId: "1-00000000"
}

const none = (kind: string): string => missing[kind] ?? nobody

const idsIn = (path: string): ReadonlyArray<string> =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "").filter((name) => !isOwn.test(name))

/** What names nothing by itself: the project, and numbers that something else counts. */
const isOwn = /^(?:projectId|version|number)$/

/** The thing of a kind that goes with the others of an address. */
const within =
  (furniture: Furniture, path: string) =>
  (kind: string): string => {
    const list = /\/agents\/\{agentId\}\/(\w+)\/\{/.exec(path)?.[1]
    const found = (kind === "agentId" ? furniture[`agentId of ${list}`] : undefined) ?? furniture[kind]
    if (found === undefined) throw new Error(`No project is furnished with a ${kind}: see furniture.ts`)
    return found
  }

/** A project of one's own and another's, furnished alike; who asks is an admin of the first alone. */
class TwoProjects extends Context.Service<
  TwoProjects,
  {
    readonly story: Story
    readonly other: Story
    readonly mine: Furniture
    readonly theirs: Furniture
  }
>()("@tropism/server/stories/TwoProjects") {
  static readonly layer = Layer.effect(
    TwoProjects,
    Effect.gen(function* () {
      const [own, other] = [yield* newStoryHere, yield* newStoryHere]
      const [mine, theirs] = yield* Effect.all([furnish(own, "their"), furnish(other, "other")], {
        concurrency: 2
      })
      const story = yield* asUser(own, "admin", [own.projectId], "their-admin")
      yield* Effect.forEach([own, other], resting)
      return TwoProjects.of({ story, other, mine, theirs })
    })
  ).pipe(Layer.provide(SharedServer.layer))
}

/** Waits until nobody works in a project any more, and every event has its place in the feed. */
const resting = (story: Story) =>
  Effect.andThen(
    eventually(story.get("/runs?limit=200"), isQuiet),
    eventually(
      rowsOf(story.access, "select 1 from kb.graph_events where project_id = $1 and position is null", [
        story.projectId
      ]),
      (unplaced) => unplaced.length === 0
    )
  )

/** What of a project anybody could have changed. */
const stateOf = Effect.fnUntraced(function* (story: Story) {
  const lists = ["events", "agents", "runs", "tasks", "contexts", "members", "tokens", "mcp-servers"]
  return yield* Effect.forEach(lists, (list) => story.get(`/${list}?limit=200`))
})

layer(TwoProjects.layer, { excludeTestServices: true })((it) => {
  describe("Every operation, with ids of another project", () => {
    it.effect(
      "answers as for ids that nothing has, in status, headers and body, and changes nothing",
      () =>
        Effect.gen(function* () {
          const { story, other, mine, theirs } = yield* TwoProjects
          const before = yield* stateOf(other)
          const named = operations.filter(({ operation }) => idsIn(operation.path).length > 0)
          expect(named.length).toBeGreaterThan(80)
          const differing: Array<Json> = []
          const others = new Map<string, number>()
          for (const asked of named) {
            const { method, path } = asked.operation
            const kinds = idsIn(path)
            const own = within(mine, path)
            const foreign = within(theirs, path)
            // Each id by itself among one's own, and all of them at once.
            const places = kinds.length === 1 ? [kinds] : [...kinds.map((kind) => [kind]), kinds]
            for (const wrong of places) {
              const at = (idOf: (kind: string) => string) => ({
                projectId: story.projectId,
                ...Object.fromEntries(
                  kinds.map((kind) => [kind, wrong.includes(kind) ? idOf(kind) : own(kind)])
                )
              })
              const absent = yield* ask(story, asked, at(none))
              const there = yield* ask(story, asked, at(foreign))
              const [one, two] = [told(absent, wrong.map(none)), told(there, wrong.map(foreign))]
              if (one !== two) differing.push({ method, path, wrong, one, two })
              if (there.status !== 404) others.set(`${method} ${path}`, there.status)
            }
          }
          expect(differing).toEqual([])
          expect(Object.fromEntries(others)).toEqual(notMissing)
          expect(yield* stateOf(other)).toEqual(before)
        }),
      // Hundreds of requests, one after the other: a busy machine takes most of a minute.
      300_000
    )

    it.effect("answers another's project as one that nobody has", () =>
      Effect.gen(function* () {
        const { story, other, theirs } = yield* TwoProjects
        const before = yield* stateOf(other)
        const inProjects = operations.filter(({ operation }) => operation.path.includes("{projectId}"))
        expect(inProjects.length).toBeGreaterThan(100)
        const differing: Array<Json> = []
        const others = new Map<string, number>()
        for (const asked of inProjects) {
          const { method, path } = asked.operation
          const at = Object.fromEntries(idsIn(path).map((kind) => [kind, within(theirs, path)(kind)]))
          const absent = yield* ask(story, asked, { ...at, projectId: nobody })
          const there = yield* ask(story, asked, { ...at, projectId: other.projectId })
          const [one, two] = [told(absent, [nobody]), told(there, [other.projectId])]
          if (one !== two) differing.push({ method, path, one, two })
          if (there.status !== 404) others.set(`${method} ${path}`, there.status)
        }
        expect(differing).toEqual([])
        expect(Object.fromEntries(others)).toEqual({})
        expect(yield* stateOf(other)).toEqual(before)
      })
    )

    it.effect("answers them as such in a query and in a body, too", () =>
      Effect.gen(function* () {
        const { story, other, mine, theirs } = yield* TwoProjects
        const before = yield* stateOf(other)
        const differing: Array<Json> = []
        let asks = 0
        for (const asked of operations) {
          const { method, parameters, path } = asked.operation
          if (!path.includes("{projectId}")) continue
          const at = { ...mine, projectId: story.projectId }
          const queries = parameters.filter((each) => each.in === "query").map(({ name }) => name)
          const sent = bodyFor(asked)
          const fields = Object.keys(propertiesOf(asked)).filter(() => typeof sent?.body === "object")
          const own = Object.fromEntries(
            fields.filter((name) => kindOf[name]).map((name) => [name, mine[kindOf[name] ?? ""]])
          )
          for (const [place, names] of [
            ["query", queries],
            ["body", fields]
          ] as const)
            for (const name of names) {
              const kind = kindOf[name] ?? name
              const foreign = theirs[kind]
              if (foreign === undefined || kind === "name" || kind === "userId") continue
              asks += 1
              const send = (id: string) =>
                place === "query"
                  ? ask(story, asked, at, { [name]: id })
                  : ask(story, asked, at, {}, { ...own, [name]: id })
              const [absent, there] = [yield* send(none(kind)), yield* send(foreign)]
              const [one, two] = [told(absent, [none(kind)]), told(there, [foreign])]
              if (one !== two) differing.push({ method, path, name, one, two })
            }
        }
        // Ids that lie deeper.
        for (const [path, kind, bodyOf] of [
          ["/tasks/decisions", "taskId", decided],
          [`/agents/${mine["agentId"]}/batch-trigger`, "objectId", (id: string) => ({ objectIds: [id] })]
        ] as const) {
          const send = (id: string) => story.ask("POST", path, bodyOf(id))
          const foreign = theirs[kind] ?? ""
          expect(told(yield* send(foreign), [foreign])).toBe(told(yield* send(none(kind)), [none(kind)]))
        }
        expect(asks).toBeGreaterThan(12)
        expect(differing).toEqual([])
        expect(yield* stateOf(other)).toEqual(before)
      })
    )
  })
})

/** Names of fields and parameters that hold ids of a kind with another name. */
const kindOf: Readonly<Record<string, string>> = {
  fromId: "objectId",
  toId: "objectId",
  parentRunId: "runId"
}

/** The fields of a body, through one reference. */
const propertiesOf = ({ operation, schemas }: Asked): Readonly<Record<string, Json>> => {
  const [first] = operation.bodies
  const schema = first?.[1]
  return (schema?.$ref === undefined ? schema : schemas[schema.$ref.split("/").at(-1)])?.properties ?? {}
}

/** What says no in another way, and why that tells nothing: it is said before any id is looked at. */
const notMissing: Readonly<Record<string, number>> = {
  // Tokens of the server are its admin's.
  "DELETE /api/tokens/{tokenId}": 403,
  // A webhook's door has a token of its own, and says no more than that it is not the right one.
  "POST /api/hooks/{webhookId}": 401
}
