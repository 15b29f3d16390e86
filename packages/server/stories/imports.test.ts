/**
 * A lockfile as a graph: imported whole, imported again, changed, refused.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, layer } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { resolve } from "node:path"
import { gzipSync } from "node:zlib"
import { fileOf } from "../testing/lockfiles.ts"
import { graphLimits } from "../src/limits.ts"
import { allOf, importFile, importLock, linesOf } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { rawAnswer } from "../testing/raw-request.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { after, before } from "../testing/shop-lockfiles.ts"
import { entriesWhen, feedOf, runsOf, watcher } from "../testing/story-words.ts"
import { namingAll } from "../testing/naming.ts"

const ownLockfile = Effect.flatMap(FileSystem.FileSystem, (files) =>
  files.readFileString(resolve(import.meta.dirname, "../../../package-lock.json"))
).pipe(Effect.orDie, Effect.provide(NodeServices.layer))

const versionsOf = (objects: ReadonlyArray<Json>) =>
  Object.fromEntries(objects.map(({ key, properties, version }) => [key, [properties.version, version]]))

/** Each relationship by the keys of its ends. */
const endsOf = Effect.fnUntraced(function* (story: Story) {
  const keys = new Map((yield* allOf(story, "/objects")).map((object) => [object.id, object.key]))
  return (yield* allOf(story, "/relationships"))
    .map(({ type, fromId, toId }) => `${keys.get(fromId)} ${type} ${keys.get(toId)}`)
    .toSorted()
})

layer(SharedServer.own, { excludeTestServices: true })((it) => {
  describe("An import", () => {
    it.effect(
      "of this checkout's own lockfile makes an object of each package and a relationship of each dependency",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const text = yield* ownLockfile
          const entries = Object.entries<Json>(JSON.parse(text).packages).filter(
            ([, entry]) => entry.link !== true
          )
          const answer = yield* importFile(story, text)
          expect([answer.status, answer.headers.get("content-type")]).toEqual([
            200,
            expect.stringMatching(/ndjson/)
          ])
          const lines = linesOf(answer)
          const steps = lines.slice(0, -1)
          expect(new Set(steps.map((line) => line.type))).toEqual(new Set(["progress"]))
          expect(steps.map((line) => line.done)).toEqual(
            steps.map((line) => line.done).toSorted((a, b) => a - b)
          )
          expect(steps.at(-1).done).toBe(steps.at(-1).total)

          const objects = yield* allOf(story, "/objects")
          const relationships = yield* allOf(story, "/relationships")
          expect(objects.length).toBeGreaterThan(100)
          expect(objects).toHaveLength(entries.length)
          expect(objects.map((object) => object.properties.path).toSorted()).toEqual(
            entries.map(([path]) => path).toSorted()
          )
          expect(new Set(objects.map((object) => object.type))).toEqual(new Set(["Package"]))
          expect(new Set(relationships.map((one) => one.type))).toEqual(new Set(["DEPENDS_ON"]))
          expect(relationships.length).toBeGreaterThan(100)
          expect(lines.at(-1)).toEqual({
            type: "finished",
            created: objects.length,
            updated: 0,
            deleted: 0,
            unchanged: 0,
            relationshipsCreated: relationships.length,
            relationshipsUpdated: 0,
            relationshipsDeleted: 0
          })
          const effect = objects.find((object) => object.properties.path === "node_modules/effect")
          expect(effect.properties).toMatchObject({
            name: "effect",
            version: JSON.parse(text).packages["node_modules/effect"].version,
            license: "MIT"
          })

          // Again: everything is so already, so there is no version and no event.
          const rows = yield* countRows(story)
          expect(yield* importLock(story, text)).toEqual({
            type: "finished",
            created: 0,
            updated: 0,
            deleted: 0,
            unchanged: objects.length,
            relationshipsCreated: 0,
            relationshipsUpdated: 0,
            relationshipsDeleted: 0
          })
          expect(yield* countRows(story)).toEqual(rows)
        })
    )

    it.effect(
      "of a changed lockfile changes exactly what has changed, and wakes agents for exactly that",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* importLock(story, before)
          const first = yield* feedOf(story, 9)
          const agent = yield* story.post(
            "/agents",
            watcher({
              reactionConfig: {
                objectTypes: ["Package"],
                events: ["created", "updated", "deleted"],
                concurrencyStrategy: "parallel"
              }
            })
          )
          expect(yield* importLock(story, after)).toEqual({
            type: "finished",
            created: 1,
            updated: 1,
            deleted: 1,
            unchanged: 3,
            relationshipsCreated: 2,
            relationshipsUpdated: 0,
            relationshipsDeleted: 1
          })
          expect(versionsOf(yield* allOf(story, "/objects"))).toEqual({
            shop: [undefined, 1],
            "shop/paint": ["1.1.0", 2],
            "shop/oil": ["3.1.4", 1],
            "shop/nail": ["2.0.0", 1],
            "shop/glue": ["1.0.0", 1]
          })
          expect(yield* endsOf(story)).toEqual([
            "shop DEPENDS_ON shop/glue",
            "shop DEPENDS_ON shop/nail",
            "shop DEPENDS_ON shop/paint",
            "shop/glue DEPENDS_ON shop/oil",
            "shop/paint DEPENDS_ON shop/oil"
          ])
          const events = (yield* feedOf(story, first.length + 6)).slice(first.length)
          const ofObjects = events.filter((event) => event.entityType === "graphObject")
          expect(ofObjects.map((event) => [event.type, event.snapshot.key]).toSorted()).toEqual([
            ["created", "shop/glue"],
            ["deleted", "shop/rope"],
            ["updated", "shop/paint"]
          ])
          expect(ofObjects.find((event) => event.type === "updated").changedProperties).toEqual(["version"])
          // Each imported change is the beginning of a chain of its own.
          expect(
            events.map((event) => [event.rootEventId, event.depth, event.actorType, event.actorId])
          ).toEqual(events.map((event) => [event.id, 0, "user", "admin"]))
          const entries = yield* entriesWhen(story, agent, 3)
          expect(
            entries.map((entry) => [entry.eventType, entry.graphObjectId, entry.status]).toSorted()
          ).toEqual(ofObjects.map((event) => [event.type, event.entityId, "completed"]).toSorted())
          yield* importLock(story, after)
          expect(yield* runsOf(story, agent)).toHaveLength(3)
        })
    )

    it.effect(
      "of a lockfile that asks for another range updates the relationship, which stays the one it was",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* importLock(story, before)
          const versions = Effect.map(
            allOf(story, "/relationships"),
            (all) => new Map(all.map(({ id, version, properties }) => [id, [version, properties.range]]))
          )
          const first = yield* versions
          expect(yield* importLock(story, before.replace('"oil":"*"', '"oil":"^3.0.0"'))).toMatchObject({
            updated: 0,
            relationshipsCreated: 0,
            relationshipsUpdated: 1,
            relationshipsDeleted: 0
          })
          const second = yield* versions
          expect([...second.keys()]).toEqual([...first.keys()])
          expect([...second.values()].filter(([version]) => version !== 1)).toEqual([[2, "^3.0.0"]])
        })
    )

    it.effect("twice at the same moment ends with each package once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ends = yield* Effect.all([importLock(story, before), importLock(story, before)], {
          concurrency: 2
        })
        expect(ends.map((line) => line.type)).toContain("finished")
        for (const line of ends.filter((each) => each.type !== "finished"))
          expect(line).toEqual({ type: "failed", message: expect.any(String) })
        expect(yield* importLock(story, before)).toMatchObject({ type: "finished", created: 0, unchanged: 5 })
        expect(yield* allOf(story, "/objects")).toHaveLength(5)
        expect(yield* allOf(story, "/relationships")).toHaveLength(4)
      })
    )

    it.effect("whose connection breaks leaves whole batches, and the same file again brings the rest", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const text = yield* ownLockfile
        const connection = new AbortController()
        yield* Effect.promise(() =>
          fetch(`${story.url}/api/projects/${story.projectId}/import?format=package-lock`, {
            method: "POST",
            body: text,
            headers: { authorization: `Bearer ${story.token}`, "content-type": "application/octet-stream" },
            signal: connection.signal
          }).then((response) => response.body?.getReader().read())
        )
        connection.abort()
        const rest = yield* eventually(importLock(story, text), (line) => line.type === "finished")
        const objects = yield* allOf(story, "/objects")
        expect(rest.created + rest.unchanged).toBe(objects.length)
        expect(new Set(objects.map((object) => object.key)).size).toBe(objects.length)
        expect(new Set(objects.map((object) => object.version))).toEqual(new Set([1]))
        expect(yield* importLock(story, text)).toMatchObject({ created: 0, relationshipsCreated: 0 })
      })
    )

    it.effect(
      "whose server fails in the middle says so behind what it has done, and the same file again brings the rest",
      () =>
        Effect.gen(function* () {
          const { access, log } = yield* SharedServer
          const story = yield* newStoryHere
          const names = Array.from({ length: graphLimits.importBatchChanges + 10 }, (_, n) => `p${n}`)
          const file = fileOf({
            "": { name: "shop" },
            ...Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: "1.0.0" }]))
          })
          const last = `shop/${names.toSorted().at(-1)}`
          yield* ask(
            access,
            `alter table kb.graph_objects add constraint not_the_last check (key <> '${last}' or project_id <> '${story.projectId}')`
          )
          const mend = ask(access, "alter table kb.graph_objects drop constraint if exists not_the_last")
          yield* Effect.addFinalizer(() => Effect.ignore(mend))
          const errors = Effect.sync(() => log.filter(({ level }) => level === "Error").length)
          const before = yield* errors
          const lines = linesOf(yield* importFile(story, file))
          expect(lines.map(({ type }) => type)).toEqual(["progress", "failed"])
          expect(lines.at(-1)).toEqual({ type: "failed", message: expect.any(String) })
          expect(yield* errors).toBe(before + 1)
          yield* mend
          expect(yield* importLock(story, file)).toMatchObject({
            type: "finished",
            created: names.length + 1 - graphLimits.importBatchChanges,
            unchanged: graphLimits.importBatchChanges
          })
        })
    )
  })

  describe("A file that is no lockfile", () => {
    type Named = ReadonlyArray<string | number>
    type Sent = readonly [query?: string | undefined, headers?: Record<string, string>]

    const ofFile: ReadonlyArray<
      readonly [title: string, file: string | Uint8Array, pointers: ReadonlyArray<string>, Named, ...Sent]
    > = [
      ["is not JSON", "nonsense", [""], ["JSON", 1, "nonsense"]],
      ["is empty", "", [""], ["JSON", 1]],
      ["is a list", "[]", [""], ["JSON"]],
      ["is another JSON file", `{"name":"x","version":"1.0.0"}`, ["/lockfileVersion"], [2, 3]],
      [
        "is of version 1",
        fileOf({}, { lockfileVersion: 1 }),
        ["/lockfileVersion"],
        ["npm install --package-lock-only --lockfile-version 3"]
      ],
      ["has a merge conflict", `{\n<<<<<<< HEAD\n}`, [""], ["JSON", 2, 1, "<<<<<<< HEAD"]],
      [
        "says no name, with none beside it",
        JSON.stringify({ lockfileVersion: 3, packages: { "": {} } }),
        ["name"],
        ["?name="]
      ],
      [
        "says one thing twice",
        `{"name":"shop","lockfileVersion":3,"packages":{"":{},"node_modules/a":{},"node_modules/a":{}}}`,
        ["/packages/node_modules~1a"],
        ["JSON"]
      ],
      ["breaks off", before.slice(0, -10), [""], ["JSON", before.length - 9]],
      [
        "has a package that is none",
        fileOf({ "node_modules/a": 1, "node_modules/b": 2 }),
        ["/packages/node_modules~1a", "/packages/node_modules~1b"],
        ["/packages/node_modules~1a", 1]
      ],
      [
        "has NUL in a name",
        fileOf({ "node_modules/a": { version: "1\u0000" } }),
        ["/packages/node_modules~1a/version"],
        ["U+0000"]
      ],
      [
        "has a lone surrogate",
        fileOf({ "node_modules/\ud800": { version: "1" } }),
        ["/packages/node_modules~1\ud800/name"],
        []
      ],
      ["is compressed", gzipSync(before), [""], ["UTF-8", "package-lock.json"]],
      ["is not UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), [""], ["UTF-8", "package-lock.json"]],
      ["says nothing of its format", before, ["format"], [], ""],
      [
        "is of a format that nobody knows",
        before,
        ["format"],
        ['"jsonl"', '"csv"', '"package-lock"'],
        "?format=yarn"
      ]
    ]
    const ofHeaders: typeof ofFile = [
      [
        "says that it is compressed",
        gzipSync(before),
        [],
        ["content-encoding", "gzip"],
        undefined,
        { "content-encoding": "gzip" }
      ],
      [
        "says that it is JSON",
        before,
        [],
        ["content-type", "application/octet-stream"],
        undefined,
        { "content-type": "application/json" }
      ]
    ]

    it.effect.each([...ofFile, ...ofHeaders])(
      "that %s is refused whole, with one sentence",
      ([, file, pointers, named, query, headers]) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const rows = yield* countRows(story)
          const answer = yield* importFile(story, file, headers, query)
          expectProblem(answer, headers ? 400 : 422)
          const faults: ReadonlyArray<Json> = answer.body.errors ?? []
          expect(faults.map(({ pointer }) => pointer)).toEqual(pointers)
          expect(answer.body.detail).toEqual(namingAll(named))
          expect(yield* countRows(story)).toEqual(rows)
        })
    )

    it.effect("that is larger than an import takes is refused before it is sent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const answer = yield* rawAnswer(story, [
          `POST /api/projects/${story.projectId}/import?format=package-lock HTTP/1.1`,
          "Content-Type: application/octet-stream",
          `Content-Length: ${64 * 1024 * 1024 + 1}`
        ])
        expect(answer).toMatch(/^HTTP\/1\.1 413 /)
        expect(answer.toLowerCase()).toContain("application/problem+json")
      })
    )
  })
})
