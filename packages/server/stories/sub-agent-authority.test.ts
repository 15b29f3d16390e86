/**
 * A sub-agent can never do more than whoever handed it its task, and neither can what it suggests.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  boss,
  childrenOf,
  handingOver,
  handOver,
  reportsOf,
  runThrough,
  spawning,
  worker
} from "../testing/sub-agent-words.ts"
import { callsOf, suggestionsOf } from "../testing/story-words.ts"
import { approve } from "../testing/suggestion-words.ts"
import { naming } from "../testing/naming.ts"

const modes = ["execute", "hybrid", "suggest"] as const
type Mode = (typeof modes)[number]

const confidences = [0.7, 0.85, 0.95]

/** What becomes of a Note of these confidences: the parent is sure at 0.9 where it is hybrid, the child at 0.8. */
const outcomes: Readonly<Record<Mode, Readonly<Record<Mode, ReadonlyArray<string>>>>> = {
  execute: {
    execute: ["applied", "applied", "applied"],
    hybrid: ["suggested", "applied", "applied"],
    suggest: ["suggested", "suggested", "suggested"]
  },
  hybrid: {
    execute: ["suggested", "suggested", "applied"],
    hybrid: ["suggested", "suggested", "applied"],
    suggest: ["suggested", "suggested", "suggested"]
  },
  suggest: {
    execute: ["suggested", "suggested", "suggested"],
    hybrid: ["suggested", "suggested", "suggested"],
    suggest: ["suggested", "suggested", "suggested"]
  }
}

interface Rights {
  readonly name: string
  readonly capabilities: unknown
  readonly mayMakeNotes: boolean
}

const parentRights: ReadonlyArray<Rights> = [
  { name: "any", capabilities: null, mayMakeNotes: true },
  { name: "nothing-new", capabilities: { canCreateObjects: false }, mayMakeNotes: false },
  { name: "other-types", capabilities: { allowedObjectTypes: ["Person"] }, mayMakeNotes: false }
]
const childRights: ReadonlyArray<Rights> = [
  { name: "any", capabilities: null, mayMakeNotes: true },
  { name: "nothing-new", capabilities: { canCreateObjects: false }, mayMakeNotes: false },
  { name: "notes", capabilities: { allowedObjectTypes: ["Note", "Person"] }, mayMakeNotes: true }
]

/** A model that makes Notes of which it is more and more sure. */
const noteMaker = handingOver(
  ...confidences.map((confidence) => ({
    tool: "create_object",
    arguments: { type: "Note", properties: { confidence }, confidence }
  }))
)

const outcomeOf = ({ isError, result }: Json): string => (isError ? result.reason : result.status)

layer(SharedServer.layer)((it) => {
  describe("A child can never do more than its parent", () => {
    for (const mode of modes)
      for (const rights of parentRights)
        it.effect(`a parent in mode ${mode} with rights to ${rights.name}, with every child`, () =>
          Effect.gen(function* () {
            const story = yield* newStoryHere
            const children = modes.flatMap((childMode) =>
              childRights.map((own) => ({ name: `${childMode}-${own.name}`, mode: childMode, own }))
            )
            for (const child of children)
              yield* story.post(
                "/agents",
                worker(child.name, noteMaker, {
                  executionMode: child.mode,
                  capabilities: child.own.capabilities
                })
              )
            const run = yield* handOver(
              story,
              children.map(({ name }) => spawning(name)),
              {
                executionMode: mode,
                capabilities: rights.capabilities,
                ...(mode === "hybrid" ? { hybridPolicy: { confidenceThreshold: 0.9 } } : {})
              }
            )
            const told = Object.fromEntries(
              (yield* childrenOf(story, run)).map((child) => [
                child.agentName,
                reportsOf(child).map(outcomeOf)
              ])
            )
            const expected = Object.fromEntries(
              children.map((child) => [
                child.name,
                rights.mayMakeNotes && child.own.mayMakeNotes
                  ? outcomes[mode][child.mode]
                  : confidences.map(() => "notPermitted")
              ])
            )
            expect(told).toEqual(expected)
          })
        )

    it.effect("nor more than the parent of its parent, and is told for whom it acts", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("leaf", noteMaker))
        yield* story.post("/agents", worker("middle", handingOver(spawning("leaf")), { subAgents: ["leaf"] }))
        const run = yield* handOver(story, [spawning("middle")], {
          subAgents: ["middle"],
          capabilities: { canCreateObjects: false }
        })
        const [middle] = yield* childrenOf(story, run)
        const [leaf] = yield* childrenOf(story, middle)
        const calls = yield* callsOf(story, leaf)
        expect(calls.map(({ status }) => status)).toEqual(["refused", "refused", "refused"])
        expect(calls[0].result.error).toEqual(naming("canCreateObjects", "boss", "middle"))
        expect((yield* story.get("/objects")).items).toEqual([])
      })
    )

    it.effect("an agent that does the same on its own keeps all its rights", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const child = yield* story.post("/agents", worker("child", noteMaker))
        yield* handOver(story, [spawning("child")], { capabilities: { canCreateObjects: false } })
        const alone = yield* runThrough(story, child)
        expect(reportsOf(alone).map(outcomeOf)).toEqual(["applied", "applied", "applied"])
      })
    )

    it.effect("a right that is taken from the parent is taken from what the child has suggested", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("child", noteMaker, { executionMode: "suggest" }))
        const parent = yield* boss(story, [spawning("child")])
        yield* runThrough(story, parent)
        const [first, second] = yield* suggestionsOf(story, 3)

        yield* story.patch(`/agents/${parent.id}`, { capabilities: { canCreateObjects: false } })
        const denied = yield* approve(story, first)
        expect([denied.status, denied.body.detail]).toEqual([
          expect.any(Number),
          expect.stringMatching(/\bboss\b/)
        ])
        expect(denied.status).toBeGreaterThanOrEqual(400)
        expect(denied.status).toBeLessThan(500)
        expect((yield* story.get(`/tasks/${first.id}`)).status).toBe("pending")

        yield* story.patch(`/agents/${parent.id}`, { capabilities: null, executionMode: "suggest" })
        expect((yield* approve(story, first)).status).toBe(200)
        // A person who approves vouches for it, whoever of them is gone by then; what they may do at all still judges it.
        yield* story.patch(`/agents/${parent.id}`, { capabilities: { canCreateObjects: false } })
        yield* story.delete(`/agents/${parent.id}`)
        expect((yield* approve(story, second)).body.reason).toBe("notPermitted")
        expect((yield* story.get("/objects")).items).toHaveLength(1)
      })
    )
  })
})
