/**
 * Lists and the contract: pages that lose and repeat nothing, and a document that says all there is.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Api } from "@tropism/api/api"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, endedRuns, feedOf, watcher } from "../testing/story-words.ts"
import { acted, undoRun } from "../testing/undo-words.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

const makeThings = (story: Story, from: number, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => from + index),
    (number) => story.post("/objects", { type: "Thing", key: `thing-${number}`, properties: { number } }),
    { concurrency: 8 }
  )

const makingNote = { tool: "create_object", arguments: { type: "Note", properties: {} } }

/** All pages of a list, following its cursor; `between` happens after each page. */
const pagesOf = Effect.fn("pagesOf")(function* (
  story: Story,
  path: string,
  limit: number,
  between: Effect.Effect<unknown> = Effect.void
) {
  const pages: Array<ReadonlyArray<Json>> = []
  let cursor: string | null = ""
  while (cursor !== null) {
    const query = `${path.includes("?") ? "&" : "?"}limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`
    const page: { readonly items: ReadonlyArray<Json>; readonly nextCursor: string | null } =
      yield* story.get(path + query)
    pages.push(page.items)
    cursor = page.nextCursor
    yield* between
  }
  return pages
})

const keysOf = (pages: ReadonlyArray<ReadonlyArray<Json>>): ReadonlyArray<string> =>
  pages.flat().map((item) => item.key)

/** A project in which every list has something: objects, relationships, runs, tasks and all they leave. */
const furnished = Effect.gen(function* () {
  const story = yield* newStoryHere
  const agent = yield* story.post(
    "/agents",
    watcher({
      executionMode: "suggest",
      reactionConfig: { objectTypes: ["Person"], events: ["created"] },
      model: calling(
        ...[1, 2, 3].map((number) => ({
          tool: "update_object",
          arguments: { objectId: "{{ input.object.id }}", properties: { number } }
        }))
      )
    })
  )
  const people = yield* Effect.forEach(["a", "b", "c"], (key) =>
    story.post("/objects", { type: "Person", key })
  )
  for (const person of people)
    yield* story.patch(`/objects/${people[0].id}`, { properties: { [person.key]: 1 } })
  for (const [from, to] of [
    [0, 1],
    [1, 2],
    [2, 0]
  ] as const)
    yield* story.post("/relationships", { type: "KNOWS", fromId: people[from]?.id, toId: people[to]?.id })
  for (const name of ["second", "third"])
    yield* story.post("/agents", { name, prompt: "x", triggerType: "manual" })
  const [run] = yield* endedRuns(story, agent, 3)
  yield* feedOf(story, 9)
  return { story, agent, run, object: people[0] }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Lists", () => {
    it.effect("give 50 items where no limit is asked for, and 200 where more are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* makeThings(story, 0, 205)
        expect((yield* story.get("/objects")).items).toHaveLength(50)
        expect((yield* story.get("/objects?limit=201")).items).toHaveLength(200)
        expect((yield* story.get("/objects?limit=1000000000")).items).toHaveLength(200)
        expect((yield* story.get("/objects?limit=7")).items).toHaveLength(7)
        const pages = yield* pagesOf(story, "/objects", 1_000)
        expect(pages.map((page) => page.length)).toEqual([200, 5])
      })
    )

    it.effect("show each item once, newest first, and end with no cursor", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* makeThings(story, 0, 9)
        const pages = yield* pagesOf(story, "/objects", 3)
        expect(pages.map((page) => page.length)).toEqual([3, 3, 3])
        expect(new Set(keysOf(pages)).size).toBe(9)
        const ids = pages.flat().map((item) => item.id)
        expect(ids).toEqual(ids.toSorted().toReversed())
        expect(yield* pagesOf(story, "/objects?type=Nothing", 3)).toEqual([[]])
      })
    )

    it.effect("lose and repeat nothing while others write and delete", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const things = yield* makeThings(story, 0, 9)
        const round = { number: 0 }
        const meanwhile = Effect.gen(function* () {
          round.number += 1
          yield* makeThings(story, 100 * round.number, 2)
          // What was shown already goes, and takes nobody else's place with it.
          const shown = (yield* story.get("/objects?limit=1&key=thing-8")).items
          for (const object of shown) yield* story.delete(`/objects/${object.id}`)
        })
        const seen = keysOf(yield* pagesOf(story, "/objects", 2, meanwhile))
        expect(seen).toHaveLength(new Set(seen).size)
        expect(seen).toEqual(expect.arrayContaining(things.slice(0, 7).map((thing) => thing.key)))
      })
    )

    it.effect("all go on after their cursor, and refuse one that is none", () =>
      Effect.gen(function* () {
        const { story, agent, run, object } = yield* furnished
        const lists = [
          "/objects",
          "/relationships",
          `/objects/${object.id}/history`,
          "/events",
          "/agents",
          `/agents/${agent.id}/processing-log`,
          "/runs",
          `/runs?agentId=${agent.id}&status=completed`,
          `/runs/${run.id}/events`,
          `/runs/${run.id}/tool-calls`,
          `/contexts/${run.contextName}/events`,
          "/tasks",
          "/tasks?status=pending&type=object_update_suggestion"
        ]
        for (const path of lists) {
          const whole: ReadonlyArray<Json> = (yield* story.get(
            `${path}${path.includes("?") ? "&" : "?"}limit=200`
          )).items
          expect([path, whole.length >= 3]).toEqual([path, true])
          const pages = yield* pagesOf(story, path, 2)
          expect([path, pages.length]).toEqual([path, Math.ceil(whole.length / 2)])
          expect([path, pages.flat()]).toEqual([path, whole])
          for (const cursor of ["nonsense", "-1", "1.5", "%00", "x".repeat(201)]) {
            const answer = yield* story.ask("GET", `${path}${path.includes("?") ? "&" : "?"}cursor=${cursor}`)
            expectProblem(answer, 422, "cursor")
          }
        }
        // A cursor goes on in its own list alone: elsewhere the same place would be other rows.
        const cursors = yield* Effect.forEach(lists, (path) =>
          Effect.map(story.get(`${path}${path.includes("?") ? "&" : "?"}limit=1`), (page) => ({
            list: path.replace(/\?.*/, ""),
            cursor: page.nextCursor
          }))
        )
        for (const path of lists)
          for (const { cursor, list } of cursors) {
            const address = `${path}${path.includes("?") ? "&" : "?"}limit=1&cursor=${cursor}`
            const answer = yield* story.ask("GET", address)
            if (list === path.replace(/\?.*/, "")) expect([address, answer.status]).toEqual([address, 200])
            else expectProblem(answer, 422, "cursor")
          }
        const projects = yield* story.send("GET", "/api/projects?limit=1")
        const next = yield* story.send("GET", `/api/projects?limit=1&cursor=${projects.body.nextCursor}`)
        expect(next.body.items[0].id < projects.body.items[0].id).toBe(true)
      })
    )

    it.effect("end at a place that is beyond every number of theirs", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, run } = yield* acted(story, [makingNote])
        const [object] = (yield* story.get("/objects")).items
        const undo = yield* undoRun(story, run)
        expect(undo.status).toBe(201)
        const numbered = [
          `/objects/${object.id}/history`,
          "/events",
          "/events?order=desc",
          `/agents/${agent.id}/versions`,
          `/runs/${run.id}/events`,
          `/runs/${run.id}/steps`,
          `/runs/${run.id}/model-calls`,
          `/contexts/${run.contextName}/events`,
          `/tasks/${undo.body.id}/revisions`,
          `/tasks/${undo.body.id}/items`
        ]
        for (const path of numbered)
          for (const cursor of [3_000_000_000, Number.MAX_SAFE_INTEGER]) {
            const address = `${path}${path.includes("?") ? "&" : "?"}cursor=${cursor}`
            expect([address, (yield* story.ask("GET", address)).status]).toEqual([address, 200])
          }
      })
    )
  })

  describe("The contract", () => {
    it.effect("is served as OpenAPI 3.1 with every endpoint, and a problem for each way to fail", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const document: Json = (yield* doors.send("GET", "/openapi.json")).body
        expect(document.openapi).toMatch(/^3\.1\.\d+$/)
        expect(document.info).toMatchObject({ title: "Tropism", version: expect.any(String) })
        const served = Object.entries<Json>(document.paths)
          .flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`))
          .toSorted()
        const endpoints = Object.values(Api.groups).flatMap((group) => Object.values(group.endpoints))
        const promised = endpoints
          .map((endpoint) => `${endpoint.method} ${endpoint.path.replace(/:(\w+)/g, "{$1}")}`)
          .toSorted()
        expect(served).toEqual(promised)

        for (const [path, item] of Object.entries<Json>(document.paths)) {
          for (const [method, operation] of Object.entries<Json>(item)) {
            // A webhook is signed: its own door says 401 and takes no token of a person.
            const isSigned = path === "/api/hooks/{webhookId}"
            const isOpen = path === "/health" || path === "/ready"
            const statuses = Object.keys(operation.responses)
            const failures = statuses.filter((status) => /^[45]/.test(status))
            expect({
              place: `${method} ${path}`,
              succeeds: statuses.some((status) => status.startsWith("2")),
              statuses,
              problems: new Set(
                failures.flatMap((status) => Object.keys(operation.responses[status].content))
              ),
              security: operation.security ?? []
            }).toEqual({
              place: `${method} ${path}`,
              succeeds: true,
              statuses: expect.arrayContaining([
                "400",
                "404",
                "413",
                "422",
                "500",
                ...(isOpen ? [] : ["401"])
              ]),
              problems: new Set(["application/problem+json"]),
              security: isOpen || isSigned ? [] : [{ bearer: [] }, { cookie: [] }]
            })
            for (const [, name] of path.matchAll(/\{(\w+)\}/g))
              expect(operation.parameters).toContainEqual(
                expect.objectContaining({ name, in: "path", required: true })
              )
          }
        }
      })
    )

    it.effect("takes each parameter of an address once, at every operation that has one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const document: Json = (yield* story.send("GET", "/openapi.json")).body
        const asked = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
          Object.entries<Json>(item).flatMap(([method, { parameters = [] }]) => {
            const [first] = parameters.filter((parameter: Json) => parameter.in === "query")
            const address = path.replace("{projectId}", story.projectId).replace(/\{\w+\}/g, nobody)
            return first && !path.includes("/v1/")
              ? [[method.toUpperCase(), address, first.name] as const]
              : []
          })
        )
        expect(asked.length).toBeGreaterThan(25)
        for (const [method, address, name] of asked) {
          const answer = yield* story.send(method, `${address}?${name}=1&other=1&${name}=1`)
          expect([method, address, answer.status]).toEqual([method, address, 422])
          expectProblem(answer, 422, name)
          expect(answer.body.detail).toContain(name)
        }
      })
    )

    it.effect("says what every operation and every query parameter of the graph is", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const document: Json = (yield* doors.send("GET", "/openapi.json")).body
        const operations = Object.values<Json>(document.paths)
          .flatMap((item) => Object.values<Json>(item))
          .filter((operation) => ["objects", "relationships", "feed"].includes(operation.tags[0]))
        expect(operations.length).toBeGreaterThan(15)
        for (const { operationId, description, parameters } of operations) {
          const untold = parameters
            .filter((parameter: Json) => parameter.in === "query")
            .filter(({ schema }: Json) => !JSON.stringify(schema).includes('"description"'))
            .map((parameter: Json) => parameter.name)
          expect([operationId, description, untold]).toEqual([operationId, expect.any(String), []])
        }
      })
    )

    it.effect("has no reference that leads nowhere", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const document: Json = (yield* doors.send("GET", "/openapi.json")).body
        const references = [
          ...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)
        ]
        expect(references.length).toBeGreaterThan(20)
        for (const [, name = ""] of references)
          expect(Object.keys(document.components.schemas)).toContain(decodeURIComponent(name))
      })
    )
  })
})
