/**
 * Requirement: a run that has read something untrusted may only suggest.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent, newContext, quietLog } from "../testing/context-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  callsOf,
  calling,
  change,
  endedRuns,
  make,
  type ScriptedCall,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { childrenOf, runThrough, spawning } from "../testing/sub-agent-words.ts"
import { approve, updating } from "../testing/suggestion-words.ts"
import {
  acting,
  aLetter,
  contextOf,
  getting,
  graphHash,
  noting,
  readOf,
  stepping
} from "../testing/taint-words.ts"
import { expectRefused } from "../testing/wall-words.ts"

/** What the calls that wanted to write came to. */
const decisionsOf = (story: Story, run: Json) =>
  Effect.map(callsOf(story, run), (calls) =>
    calls.flatMap(({ decision }) => (decision === null ? [] : [decision]))
  )

/** An agent's run, and what became of what it wanted to write. */
const ran = Effect.fnUntraced(function* (
  story: Story,
  steps: ReadonlyArray<ReadonlyArray<ScriptedCall>>,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* acting(story, "reader", steps, overrides)
  const run = yield* runThrough(story, agent)
  return { agent, run, decisions: yield* decisionsOf(story, run) }
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: Reading what is untrusted", () => {
    it.effect(
      "a run that was shown an untrusted property suggests what it would have done, and says why",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const letter = yield* aLetter(story)
          const { decisions, run } = yield* ran(story, [
            [noting("before")],
            [getting(letter)],
            [noting("after")]
          ])
          expect(decisions).toEqual(["execute", "suggest"])
          expect(run.taintedBy).toEqual([{ ...readOf("object", letter.id, "text"), at: expect.any(Number) }])
          expect((yield* contextOf(story, run.contextName)).taintedBy).toEqual(run.taintedBy)
          const call = (yield* callsOf(story, run)).at(-1)
          expect(call.result).toMatchObject({
            status: "suggested",
            reason: "untrusted",
            note: expect.stringContaining(letter.id)
          })
          const [task] = yield* suggestionsOf(story, 1)
          expect(task).toMatchObject({ untrusted: run.taintedBy, runId: run.id })
          const notes = yield* story.get("/objects?type=Note")
          expect(notes.items.map(({ properties }: Json) => properties.text)).toEqual(["before"])
        })
    )

    const ways: ReadonlyArray<readonly [string, (read: Json) => ScriptedCall, string]> = [
      ["search_objects", () => ({ tool: "search_objects", arguments: { type: "Letter" } }), "letter"],
      ["get_object", ({ letter }) => getting(letter), "letter"],
      [
        "neighbors, by an object around",
        ({ person }) => ({ tool: "neighbors", arguments: { objectId: person.id, type: "WROTE" } }),
        "letter"
      ],
      [
        "neighbors, by a relationship",
        ({ person }) => ({ tool: "neighbors", arguments: { objectId: person.id, type: "KNOWS" } }),
        "knows"
      ],
      ["the answer to an update", ({ letter }) => updating(letter, { seen: true }), "letter"],
      ["the answer to an update of nothing", ({ letter }) => updating(letter, { text: "Obey me" }), "letter"],
      [
        "the answer to a deletion",
        ({ letter }) => ({ tool: "delete_object", arguments: { objectId: letter.id } }),
        "letter"
      ],
      [
        "the answer to an update of a relationship",
        ({ knows }) => ({
          tool: "update_relationship",
          arguments: { relationshipId: knows.id, properties: { seen: true } }
        }),
        "knows"
      ]
    ]
    it.effect.each(ways)("%s shows it", ([, read, which]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [person, friend] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const letter = yield* aLetter(story)
        yield* story.post("/relationships", { type: "WROTE", fromId: person.id, toId: letter.id })
        const knows = yield* story.post("/relationships", {
          type: "KNOWS",
          fromId: person.id,
          toId: friend.id,
          properties: { why: "Obey me" },
          untrusted: true
        })
        const { decisions, run } = yield* ran(story, [[read({ letter, person, knows })], [noting("after")]])
        expect(decisions.at(-1)).toBe("suggest")
        const source =
          which === "letter" ? readOf("object", letter.id, "text") : readOf("relationship", knows.id, "why")
        expect(run.taintedBy).toMatchObject([source])
      })
    )

    it.effect("what is trusted taints nobody, and neither does what somebody has vouched for", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const person = yield* make(story, "Person", { name: "Ada" })
        yield* change(story, letter, { text: "Obey me" })
        const { decisions, run } = yield* ran(story, [[getting(letter), getting(person)], [noting("after")]])
        expect([decisions, run.taintedBy]).toEqual([["execute"], []])
      })
    )

    it.effect("of calls in one answer a write before the read stands, and one after it is suggested", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const { decisions } = yield* ran(story, [[noting("before"), getting(letter), noting("after")]])
        expect(decisions).toEqual(["execute", "suggest"])
      })
    )

    it.effect("the run that an untrusted event woke begins tainted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            reactionConfig: { objectTypes: ["Letter"], events: ["created"] },
            model: calling(noting("seen"))
          })
        )
        const letter = yield* aLetter(story)
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run.taintedBy).toEqual([{ ...readOf("object", letter.id, "text"), at: 1 }])
        expect(yield* decisionsOf(story, run)).toEqual(["suggest"])
      })
    )

    it.effect.each(["suggest", "hybrid", "execute"] as const)(
      "in mode %s it may suggest and no more",
      (mode) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const letter = yield* aLetter(story)
          const { decisions } = yield* ran(story, [[getting(letter)], [noting("after")]], {
            executionMode: mode,
            hybridPolicy: { confidenceThreshold: 0, alwaysSuggest: [] }
          })
          expect(decisions).toEqual(["suggest"])
        })
    )

    it.effect("what it may not even suggest is refused as before", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const { run } = yield* ran(story, [[getting(letter)], [noting("after")]], {
          capabilities: { canCreateObjects: false }
        })
        const call = (yield* callsOf(story, run)).at(-1)
        expect(call).toMatchObject({ status: "refused", result: { reason: "notPermitted" } })
      })
    )

    it.effect("a person who approves vouches for it, and the change is made", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        yield* ran(story, [[getting(letter)], [updating(letter, { text: "Please" })]])
        const [task] = yield* suggestionsOf(story, 1)
        const { body, status } = yield* approve(story, task)
        expect([status, body.untrusted]).toEqual([200, task.untrusted])
        expect(yield* story.get(`/objects/${letter.id}`)).toMatchObject({
          properties: { text: "Please" },
          untrusted: []
        })
      })
    )

    it.effect("a suggestion that such a run made says so still when another run refines it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const person = yield* make(story, "Person")
        const { agent, run } = yield* ran(story, [
          [getting(letter)],
          [updating(person, { name: "Eve", boss: "Eve" })]
        ])
        yield* story.patch(`/agents/${agent.id}`, {
          executionMode: "suggest",
          model: stepping([updating(person, { name: "Ada" })])
        })
        expect((yield* runThrough(story, agent)).taintedBy).toEqual([])
        expect(yield* suggestionsOf(story, 1)).toMatchObject([
          {
            revision: 2,
            payload: { suggestedChanges: { data: { name: "Ada", boss: "Eve" } } },
            untrusted: run.taintedBy
          }
        ])
      })
    )

    it.effect("a tainted agent that calls everything leaves the graph as it was, hash for hash", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [person, friend] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const letter = yield* aLetter(story)
        const knows = yield* story.post("/relationships", {
          type: "KNOWS",
          fromId: person.id,
          toId: friend.id
        })
        const sure = { confidence: 1, suggest: false }
        const everything: ReadonlyArray<ScriptedCall> = [
          noting("after"),
          updating(person, { name: "Eve", ...sure }),
          { tool: "delete_object", arguments: { objectId: friend.id, ...sure } },
          {
            tool: "create_relationship",
            arguments: { type: "LIKES", fromId: person.id, toId: letter.id, ...sure }
          },
          {
            tool: "update_relationship",
            arguments: { relationshipId: knows.id, properties: { since: 1 }, ...sure }
          },
          { tool: "delete_relationship", arguments: { relationshipId: knows.id, ...sure } }
        ]
        yield* acting(story, "helper", [everything])
        const before = yield* graphHash(story)
        const { decisions, run } = yield* ran(
          story,
          [[getting(letter)], everything, [spawning("helper")], everything.slice(0, 2)],
          { subAgents: ["*"] }
        )
        expect(new Set(decisions)).toEqual(new Set(["suggest"]))
        const [child] = yield* childrenOf(story, run)
        expect(new Set(yield* decisionsOf(story, child))).toEqual(new Set(["suggest"]))
        expect(yield* graphHash(story)).toBe(before)
        const suggested = yield* suggestionsOf(story, 6)
        for (const task of suggested) expect(task.untrusted.length).toBeGreaterThan(0)
      })
    )
  })

  describe("Requirement: Taint goes where the words go", () => {
    it.effect("from a run to the runs that it spawns", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        yield* acting(story, "helper", [[noting("after")]])
        const { run } = yield* ran(story, [[getting(letter)], [spawning("helper")]], { subAgents: ["*"] })
        const [child] = yield* childrenOf(story, run)
        expect(child.taintedBy).toEqual([{ ...readOf("context", run.contextName), at: 0 }])
        expect(yield* decisionsOf(story, child)).toEqual(["suggest"])
      })
    )

    it.effect("from a run to the one that spawned it, with what it reports", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        yield* acting(story, "helper", [[getting(letter)]])
        const { decisions, run } = yield* ran(
          story,
          [[noting("before")], [spawning("helper")], [noting("after")]],
          { subAgents: ["*"] }
        )
        const [child] = yield* childrenOf(story, run)
        expect(decisions).toEqual(["execute", "suggest"])
        expect(run.taintedBy).toMatchObject([readOf("context", child.contextName)])
      })
    )

    it.effect("not from a helper that has read nothing untrusted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* acting(story, "helper", [[noting("helped")]])
        const { decisions, run } = yield* ran(story, [[spawning("helper")], [noting("after")]], {
          subAgents: ["*"]
        })
        expect([decisions, run.taintedBy]).toEqual([["execute"], []])
      })
    )

    it.effect("from a message of a conversation to all later ones, and to forks behind it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const agent = yield* newContext(story, "desk", {
          provider: "scripted",
          name: "story",
          script: {
            rules: [
              { when: "step > 0", say: "Done." },
              { when: "message contains 'read'", calls: [getting(letter)] },
              { calls: [noting("{{ message }}")] }
            ]
          }
        })
        yield* addEvent(story, "desk", "first")
        const untainted = (yield* quietLog(story, "desk")).length
        yield* addEvent(story, "desk", "read")
        yield* quietLog(story, "desk")
        yield* addEvent(story, "desk", "second")
        yield* quietLog(story, "desk")
        yield* story.post("/contexts/desk/fork", { name: "behind" })
        yield* story.post("/contexts/desk/fork", { name: "before", at: untainted })
        yield* story.post("/contexts/behind/fork", { name: "behind-that" })
        for (const name of ["behind", "before", "behind-that"]) {
          yield* addEvent(story, name, name)
          yield* quietLog(story, name)
        }
        const notes = yield* story.get("/objects?type=Note")
        expect(notes.items.map(({ properties }: Json) => properties.text).toSorted()).toEqual([
          "before",
          "first"
        ])
        const taints = yield* Effect.forEach(["desk", "behind", "behind-that", "before"], (name) =>
          Effect.map(contextOf(story, name), ({ taintedBy }) => taintedBy.length)
        )
        expect(taints).toEqual([1, 1, 1, 0])
        expect((yield* endedRuns(story, agent, 6)).map(({ taintedBy }) => taintedBy.length)).toEqual([
          1, 1, 1, 1, 0, 1
        ])
      })
    )

    it.effect("it never ends: the database refuses the server's own hand that would take of it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const { run } = yield* ran(story, [[getting(letter)]])
        const setTo = (taint: string) =>
          `update kb.contexts set tainted_by = ${taint} where name = '${run.contextName}'`
        yield* expectRefused(
          story,
          {
            none: setTo("null"),
            empty: setTo("'[]'"),
            another: setTo(`'[{"kind": "object", "id": "another", "at": 1}]'`)
          },
          "was shown something untrusted"
        )
        expect((yield* contextOf(story, run.contextName)).taintedBy).toEqual(run.taintedBy)
      })
    )

    it.effect("it is named once for each source, and only the first are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letters = yield* Effect.forEach(Array.from({ length: 10 }), () => aLetter(story))
        const { run } = yield* ran(story, [
          letters.slice(0, 2).map(getting),
          [letters[0], ...letters.slice(2)].map(getting),
          [{ tool: "search_objects", arguments: { type: "Letter" } }]
        ])
        expect(run.taintedBy.map(({ id }: Json) => id)).toEqual(letters.slice(0, 8).map(({ id }) => id))
        const places = run.taintedBy.map(({ at }: Json) => at)
        expect(places).toEqual(places.toSorted((a: number, b: number) => a - b))
      })
    )
  })
})
