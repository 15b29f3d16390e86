/**
 * What an agent may do, and whether it does it or asks.
 *
 * The matrix is counted out in full, flag by flag and change by change, against
 * a table that is written here by hand.
 */
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  Capabilities,
  type ChangeKind,
  ChangeKind as ChangeKinds,
  choosesToSuggest,
  denies,
  ExecutionMode,
  type HybridPolicy,
  narrow
} from "./capability.ts"

const flagOf: Readonly<Record<ChangeKind, Exclude<keyof Capabilities, "allowedObjectTypes">>> = {
  create: "canCreateObjects",
  update: "canUpdateObjects",
  delete: "canDeleteObjects",
  createRelationship: "canCreateRelationships",
  updateRelationship: "canUpdateRelationships",
  deleteRelationship: "canDeleteRelationships"
}
/** The flag that decides where another is missing. */
const followed: Partial<Record<string, (typeof flagOf)[ChangeKind]>> = {
  canUpdateRelationships: "canUpdateObjects",
  canDeleteRelationships: "canDeleteObjects"
}
const kinds = ChangeKinds.literals
const flags = Object.values(flagOf)

const requirement: Readonly<Record<ChangeKind, string>> = {
  create: "S001-R29",
  update: "S001-R30",
  delete: "S000-R26 S001-R31",
  createRelationship: "S001-R32",
  updateRelationship: "S001-R30",
  deleteRelationship: "S001-R31"
}

describe("denies", () => {
  it.each(kinds)("null capabilities are unrestricted: %s", (kind) => {
    expect(denies(null, kind, ["Person"])).toBeUndefined()
    expect(denies({}, kind, ["Person"])).toBeUndefined()
  })

  const matrix = kinds.flatMap((kind) =>
    flags.flatMap((flag) =>
      [undefined, null, true, false].map((value) => [requirement[kind], kind, flag, value] as const)
    )
  )

  it.each(matrix)("%s: %s under %s = %s", (_, kind, flag, value) => {
    const named = flags.filter((name) => denies({ [flag]: value }, kind, ["Person"])?.includes(name))
    const concerned = [flagOf[kind], followed[flagOf[kind]] ?? flagOf[kind]]
    expect(named).toEqual(
      value === false && concerned.includes(flag) ? [...new Set([flag, flagOf[kind]])] : []
    )
  })

  it("S001-R29, R30, R31, R32 each setting of the six flags: a missing one for relationships follows that for objects", () => {
    const values = [undefined, null, true, false]
    const settings = flags.reduce<ReadonlyArray<Capabilities>>(
      (all, flag) => all.flatMap((each) => values.map((value) => ({ ...each, [flag]: value }))),
      [{}]
    )
    expect(settings).toHaveLength(values.length ** flags.length)
    const wrong = settings.flatMap((capabilities) =>
      kinds.filter((kind) => {
        const own = capabilities[flagOf[kind]] ?? null
        const other = followed[flagOf[kind]]
        const isDenied =
          own === false || (own === null && other !== undefined && capabilities[other] === false)
        return (denies(capabilities, kind, ["Person"]) !== undefined) !== isDenied
      })
    )
    expect(wrong).toEqual([])
  })

  it("S001-R29, R30, R31, R32 with the four flags of the specification false nothing is permitted", () => {
    const ofTheSpecification = {
      canCreateObjects: false,
      canUpdateObjects: false,
      canDeleteObjects: false,
      canCreateRelationships: false
    }
    expect(kinds.filter((kind) => denies(ofTheSpecification, kind, []) === undefined)).toEqual([])
    const granted = { ...ofTheSpecification, canUpdateRelationships: true, canDeleteRelationships: true }
    expect(kinds.filter((kind) => denies(granted, kind, []) === undefined)).toEqual([
      "updateRelationship",
      "deleteRelationship"
    ])
  })

  it.each(kinds)("a flag that is false denies %s whatever the other flags allow", (kind) => {
    const allTrue = Object.fromEntries(flags.map((flag) => [flag, true]))
    expect(denies({ ...allTrue, [flagOf[kind]]: false, allowedObjectTypes: null }, kind, [])).toBeDefined()
    expect(denies(allTrue, kind, ["Person"])).toBeUndefined()
  })

  it.each(kinds)(
    "S000-R28 allowedObjectTypes [Person, Company] lets %s touch a Person and no Document",
    (kind) => {
      const capabilities = { allowedObjectTypes: ["Person", "Company"] }
      expect(denies(capabilities, kind, ["Person"])).toBeUndefined()
      expect(denies(capabilities, kind, ["Document"])).toMatch(/allowedObjectTypes.*Document/)
    }
  )

  it.each(kinds)("both types that %s touches must be allowed", (kind) => {
    const capabilities = { allowedObjectTypes: ["Person", "Company"] }
    expect(denies(capabilities, kind, ["Person", "Company"])).toBeUndefined()
    expect(denies(capabilities, kind, ["Person", "Document"])).toContain("Document")
    expect(denies(capabilities, kind, ["Document", "Person"])).toContain("Document")
  })

  it.each(kinds)("S001-R33 allowedObjectTypes null is every type, [] is none: %s", (kind) => {
    expect(denies({ allowedObjectTypes: null }, kind, ["Anything"])).toBeUndefined()
    expect(denies({ allowedObjectTypes: [] }, kind, ["Anything"])).toBeDefined()
  })

  it("a type is compared whole and with its case", () => {
    expect(denies({ allowedObjectTypes: ["Person"] }, "create", ["person"])).toBeDefined()
    expect(denies({ allowedObjectTypes: ["Person"] }, "create", ["Perso"])).toBeDefined()
  })
})

describe("choosesToSuggest", () => {
  const sure = { confidence: 1, suggest: false }

  it.each(kinds)("S000-R21 suggest mode suggests %s however sure the agent is", (kind) => {
    expect(choosesToSuggest("suggest", null, kind, sure)).toBe(true)
    expect(choosesToSuggest("suggest", { confidenceThreshold: 0, alwaysSuggest: [] }, kind, sure)).toBe(true)
  })

  it.each(kinds)("S000-R24 execute mode does %s however unsure the agent is", (kind) => {
    expect(choosesToSuggest("execute", null, kind, { confidence: 0, suggest: false })).toBe(false)
    expect(
      choosesToSuggest("execute", { confidenceThreshold: 1, alwaysSuggest: [kind] }, kind, {
        confidence: null,
        suggest: false
      })
    ).toBe(false)
  })

  it.each(ExecutionMode.literals)("an agent may always choose to suggest: %s", (mode) => {
    expect(
      choosesToSuggest(mode, { confidenceThreshold: 0, alwaysSuggest: [] }, "create", {
        confidence: 1,
        suggest: true
      })
    ).toBe(true)
  })

  type Row = readonly [
    kind: ChangeKind,
    confidence: number | null,
    policy: HybridPolicy | null,
    suggests: boolean
  ]
  const rows: ReadonlyArray<Row> = [
    ["create", 0.79, null, true],
    ["create", 0.8, null, false],
    ["update", 1, null, false],
    ["create", null, null, true],
    ["create", 0, null, true],
    ["delete", 1, null, true],
    ["createRelationship", 0.9, null, false],
    ["deleteRelationship", 0.9, null, false],
    ["delete", 1, { alwaysSuggest: [] }, false],
    ["delete", 0.79, { alwaysSuggest: [] }, true],
    ["delete", 1, { alwaysSuggest: null }, true],
    ["create", 1, { alwaysSuggest: ["create"] }, true],
    ["delete", 1, { alwaysSuggest: ["create"] }, false],
    ["create", 0.5, { confidenceThreshold: 0.5 }, false],
    ["create", 0.49, { confidenceThreshold: 0.5 }, true],
    ["create", 0.79, { confidenceThreshold: null }, true],
    ["create", 0, { confidenceThreshold: 0 }, false],
    ["create", null, { confidenceThreshold: 0 }, true]
  ]

  it.each(rows)(
    "S000-R25 S001-R28 hybrid: %s at confidence %s under %j suggests: %s",
    (kind, confidence, policy, suggests) => {
      expect(choosesToSuggest("hybrid", policy, kind, { confidence, suggest: false })).toBe(suggests)
    }
  )
})

describe("Capabilities", () => {
  it("takes null for absent and nothing that is no type", () => {
    const isValid = Schema.is(Capabilities)
    expect(isValid({ canDeleteObjects: null, allowedObjectTypes: null })).toBe(true)
    expect(isValid({ allowedObjectTypes: ["not a type"] })).toBe(false)
    expect(isValid({ canDeleteObjects: "false" })).toBe(false)
  })
})

describe("narrow", () => {
  const powers = (
    executionMode: typeof ExecutionMode.Type,
    capabilities: Capabilities | null = null,
    hybridPolicy: HybridPolicy | null = null
  ) => ({ executionMode, capabilities, hybridPolicy })

  it.each([
    ["suggest", "suggest", "suggest"],
    ["suggest", "hybrid", "suggest"],
    ["suggest", "execute", "suggest"],
    ["hybrid", "suggest", "suggest"],
    ["hybrid", "hybrid", "hybrid"],
    ["hybrid", "execute", "hybrid"],
    ["execute", "suggest", "suggest"],
    ["execute", "hybrid", "hybrid"],
    ["execute", "execute", "execute"]
  ] as const)("%s below %s is %s", (own, above, both) => {
    expect(narrow(powers(own), powers(above)).executionMode).toBe(both)
  })

  it.each<readonly [HybridPolicy | null, HybridPolicy | null, number, ReadonlyArray<ChangeKind>]>([
    [null, null, 0.8, ["delete"]],
    [{ confidenceThreshold: 0.5 }, null, 0.8, ["delete"]],
    [null, { confidenceThreshold: 0.9 }, 0.9, ["delete"]],
    [{ confidenceThreshold: 0.95, alwaysSuggest: [] }, { confidenceThreshold: 0.9 }, 0.95, ["delete"]],
    [{ alwaysSuggest: ["create"] }, { alwaysSuggest: ["update"] }, 0.8, ["create", "update"]],
    [{ alwaysSuggest: [] }, { alwaysSuggest: [] }, 0.8, []]
  ])(
    "of two hybrid policies %j and %j takes the higher threshold and all that either suggests",
    (own, above, threshold, always) => {
      const both = narrow(powers("hybrid", null, own), powers("hybrid", null, above))
      for (const kind of kinds) {
        const suggests = (confidence: number) =>
          choosesToSuggest(both.executionMode, both.hybridPolicy, kind, { confidence, suggest: false })
        expect([kind, suggests(threshold), suggests(threshold - 0.01)]).toEqual([
          kind,
          always.includes(kind),
          true
        ])
      }
    }
  )

  it("keeps the policy of the one that is hybrid", () => {
    const policy = { confidenceThreshold: 0.3 }
    expect(narrow(powers("hybrid", null, policy), powers("execute")).hybridPolicy).toBe(policy)
    expect(narrow(powers("execute"), powers("hybrid", null, policy)).hybridPolicy).toBe(policy)
  })

  const some: ReadonlyArray<Capabilities | null> = [
    null,
    {},
    ...flags.map((flag) => ({ [flag]: false })),
    { canCreateObjects: true, canDeleteObjects: false },
    { canUpdateObjects: false, canUpdateRelationships: true },
    { canDeleteObjects: false, canDeleteRelationships: true },
    { allowedObjectTypes: null },
    { allowedObjectTypes: [] },
    { allowedObjectTypes: ["Person"] },
    { allowedObjectTypes: ["Person", "Note"], canUpdateObjects: false },
    { allowedObjectTypes: ["Note"] }
  ]

  it("permits exactly what both permit, whatever the change touches", () => {
    const touched = [["Person"], ["Note"], ["Person", "Note"], ["Other"]]
    for (const own of some)
      for (const above of some)
        for (const kind of kinds)
          for (const types of touched) {
            const both = narrow(powers("execute", own), powers("execute", above))
            const isDenied =
              denies(own, kind, types) !== undefined || denies(above, kind, types) !== undefined
            expect([own, above, kind, types, denies(both.capabilities, kind, types) !== undefined]).toEqual([
              own,
              above,
              kind,
              types,
              isDenied
            ])
          }
  })
})
