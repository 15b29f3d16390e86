/**
 * What taints a context, and what is left of an agent's powers then.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Powers } from "./capability.ts"
import { choosesToSuggest } from "./capability.ts"
import { ObjectId, RelationshipId } from "./ids.ts"
import { distinctTaints, narrowTainted, taintBounds, taintOf, taintOfEvents, taintSentence } from "./taint.ts"

const id = "01990000-0000-7000-8000-000000000001"
const other = "01990000-0000-7000-8000-000000000002"
const read = { kind: "object", id, properties: ["text"] } as const

describe("What taints", () => {
  it("is what has untrusted properties among what is shown", () => {
    expect(
      taintOf(
        [
          { id: ObjectId.make(id), untrusted: ["text"] },
          { id: ObjectId.make(other), untrusted: [] }
        ],
        [{ id: RelationshipId.make(other), untrusted: ["why"] }]
      )
    ).toEqual([read, { kind: "relationship", id: other, properties: ["why"] }])
    expect(taintOf([{ id: ObjectId.make(id), untrusted: [] }])).toEqual([])
  })

  it("is named within bounds, however much it is", () => {
    const names = Array.from({ length: 100 }, (_, index) => `p${index}`)
    const sources = taintOf(names.map(() => ({ id: ObjectId.make(id), untrusted: names })))
    expect([sources.length, sources[0]?.properties?.length]).toEqual([
      taintBounds.sources,
      taintBounds.properties
    ])
  })

  it("is told once for each source, in the order in which they came", () => {
    const at = (kind: "object" | "webhook", source: string, place: number) => ({
      kind,
      id: source,
      at: place
    })
    expect(
      distinctTaints([at("object", id, 3), at("object", other, 5), at("object", id, 9), at("webhook", id, 0)])
    ).toEqual([at("object", id, 3), at("object", other, 5), at("webhook", id, 0)])
  })

  it("is what an event says of its object, and nothing where it says nothing", () => {
    const event = (snapshot: object | string) => ({
      entityType: "graphObject" as const,
      entityId: id,
      snapshot: snapshot as never
    })
    expect(taintOfEvents([event({ id, untrusted: ["text"] })])).toEqual([read])
    for (const snapshot of [{}, { untrusted: [] }, { untrusted: "text" }, { purged: true }, "text"])
      expect(taintOfEvents([event(snapshot)])).toEqual([])
    expect(taintOfEvents([{ ...event({ untrusted: ["why"] }), entityType: "relationship" }])).toMatchObject([
      { kind: "relationship" }
    ])
  })
})

describe("What a tainted run may do", () => {
  const powers = (executionMode: Powers["executionMode"]): Powers => ({
    executionMode,
    hybridPolicy: { confidenceThreshold: 0, alwaysSuggest: [] },
    capabilities: { canDeleteObjects: false }
  })

  it.each(["suggest", "hybrid", "execute"] as const)("suggests, in mode %s, however sure it is", (mode) => {
    const { capabilities, executionMode, hybridPolicy } = narrowTainted(powers(mode), [read])
    expect(choosesToSuggest(executionMode, hybridPolicy, "create", { confidence: 1, suggest: false })).toBe(
      true
    )
    expect(capabilities).toEqual({ canDeleteObjects: false })
    expect(narrowTainted(powers(mode), [])).toEqual(powers(mode))
  })

  it("is told why", () => {
    expect(taintSentence([])).toBeUndefined()
    expect(taintSentence([read])).toMatch(new RegExp(`text.*object ${id}`))
    const several = taintSentence([
      { kind: "webhook", id },
      { ...read, id: other }
    ])
    expect(several).toContain(`webhook ${id}`)
    expect(several).not.toContain(other)
    expect(several).not.toBe(taintSentence([{ kind: "webhook", id }]))
  })
})
