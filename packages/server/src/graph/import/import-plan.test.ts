/**
 * What an import plans: done in its order, the graph says what the file says.
 *
 * The property tests perform each step on a graph in memory that refuses what
 * the real one refuses: a relationship without its ends, a key that is taken, a
 * package that still has relationships.
 */
import { describe, expect, it } from "@effect/vitest"
import { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { isJsonObject, mergePatch, type Properties } from "@tropism/domain/json"
import { Arbitrary, Schema } from "effect"
import { read } from "../../../testing/lockfiles.ts"
import {
  type CurrentGraph,
  type ImportPlan,
  importedDependencyProperties,
  importedProperties,
  type ImportStep,
  planImport
} from "./package-importer.ts"
import type { LockGraph } from "./package-lock.ts"

const uuid = (number: number) => `01990000-0000-7000-8000-${String(number).padStart(12, "0")}`

const empty: CurrentGraph = { packages: [], dependencies: [] }

const endsOf = (each: { readonly fromKey: string; readonly toKey: string }) =>
  `${each.fromKey} → ${each.toKey}`

const patched = (properties: Properties, patch: Properties): Properties => {
  const result = mergePatch(properties, patch)
  return isJsonObject(result) ? result : expect.unreachable()
}

/** Performs a plan, step by step, and checks that each step may be done when its turn comes. */
const perform = (current: CurrentGraph, plan: ImportPlan): CurrentGraph => {
  const packages = new Map(current.packages.map((each) => [each.key, each]))
  const dependencies = new Map(current.dependencies.map((each) => [each.id, each]))
  let made = 1_000 + packages.size + dependencies.size
  const steps: {
    readonly [Type in ImportStep["type"]]: (step: Extract<ImportStep, { type: Type }>) => void
  } = {
    createPackage: ({ key, properties }) => {
      expect(packages.has(key)).toBe(false)
      packages.set(key, { id: ObjectId.make(uuid(made++)), key, properties, untrusted: [], version: 1 })
    },
    updatePackage: ({ id, key, patch, expectedVersion }) => {
      const before = packages.get(key) ?? expect.unreachable()
      expect([before.id, before.version]).toEqual([id, expectedVersion])
      packages.set(key, {
        id,
        key,
        properties: patched(before.properties, patch),
        untrusted: before.untrusted,
        version: before.version + 1
      })
    },
    createDependency: ({ fromKey, toKey, properties }) => {
      expect(packages.has(fromKey) && packages.has(toKey)).toBe(true)
      expect([...dependencies.values()].map(endsOf)).not.toContain(endsOf({ fromKey, toKey }))
      const id = RelationshipId.make(uuid(made++))
      dependencies.set(id, { id, fromKey, toKey, properties, untrusted: [], version: 1 })
    },
    updateDependency: ({ id, patch, expectedVersion }) => {
      const before = dependencies.get(id) ?? expect.unreachable()
      expect(before.version).toBe(expectedVersion)
      dependencies.set(id, {
        ...before,
        properties: patched(before.properties, patch),
        version: before.version + 1
      })
    },
    deleteDependency: ({ id, expectedVersion }) => {
      expect(dependencies.get(id)?.version).toBe(expectedVersion)
      dependencies.delete(id)
    },
    deletePackage: ({ id, key, expectedVersion }) => {
      expect(packages.get(key)).toMatchObject({ id, version: expectedVersion })
      for (const each of dependencies.values()) expect([each.fromKey, each.toKey]).not.toContain(key)
      packages.delete(key)
    }
  }
  const one = <Type extends ImportStep["type"]>(step: Extract<ImportStep, { type: Type }>, type: Type) =>
    steps[type](step)
  for (const step of plan.steps) one(step, step.type)
  return { packages: [...packages.values()], dependencies: [...dependencies.values()] }
}

/** The graph as the lockfile speaks of it: no ids, no versions, none of what others have noted. */
const spoken = (current: CurrentGraph) => ({
  packages: new Map(
    current.packages.map(({ key, properties }) => [key, only(properties, importedProperties)])
  ),
  dependencies: new Map(
    current.dependencies.map((each) => [endsOf(each), only(each.properties, importedDependencyProperties)])
  )
})

const only = (properties: Properties, names: ReadonlySet<string>): Properties =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => names.has(name)))

const wanted = (lock: LockGraph) => ({
  packages: new Map(lock.packages.map(({ key, properties }) => [key, properties])),
  dependencies: new Map(lock.dependencies.map((each) => [endsOf(each), each.properties]))
})

const stepsOf = (plan: ImportPlan) => plan.steps.map((step) => step.type)

describe("planImport", () => {
  const before = read({
    "": { name: "shop", dependencies: { a: "^1.0.0", b: "1" } },
    "node_modules/a": { version: "1.0.0", license: "MIT", engines: { node: ">=18", npm: ">=9" } },
    "node_modules/b": {}
  })
  const imported = perform(empty, planImport(empty, before))

  it("of an empty graph creates packages first, then dependencies", () => {
    expect(stepsOf(planImport(empty, before))).toEqual([
      "createPackage",
      "createPackage",
      "createPackage",
      "createDependency",
      "createDependency"
    ])
  })

  it("of a graph that says the same already is empty", () => {
    expect(planImport(imported, before)).toEqual({
      steps: [],
      unchangedPackages: 3,
      unchangedDependencies: 2
    })
  })

  it("of a package that changed is the merge patch: null for what must go, inside engines too", () => {
    const after = read({
      "": { name: "shop", dependencies: { a: "^1.0.0", b: "1" } },
      "node_modules/a": { version: "1.1.0", engines: { node: ">=20" }, deprecated: "use b" },
      "node_modules/b": {}
    })
    const plan = planImport(imported, after)
    expect(plan.steps).toMatchObject([
      {
        type: "updatePackage",
        key: "shop/a",
        patch: { version: "1.1.0", license: null, engines: { node: ">=20", npm: null }, deprecated: "use b" },
        expectedVersion: 1
      }
    ])
    expect(plan).toMatchObject({ unchangedPackages: 2, unchangedDependencies: 2 })
  })

  it("of a dependency whose kind or range changed updates it", () => {
    const after = read({
      "": { name: "shop", optionalDependencies: { a: "^1.0.0" }, dependencies: { b: "2" } },
      "node_modules/a": { version: "1.0.0", license: "MIT", engines: { node: ">=18", npm: ">=9" } },
      "node_modules/b": {}
    })
    expect(planImport(imported, after).steps).toMatchObject([
      {
        type: "updateDependency",
        toKey: "shop/a",
        patch: { kind: "optional" },
        expectedVersion: 1
      },
      { type: "updateDependency", toKey: "shop/b", patch: { range: "2" }, expectedVersion: 1 }
    ])
  })

  it("of a package that is gone deletes its dependencies before it", () => {
    const after = read({
      "": { name: "shop", dependencies: { a: "^1.0.0" } },
      "node_modules/a": { version: "1.0.0", license: "MIT", engines: { node: ">=18", npm: ">=9" } }
    })
    expect(planImport(imported, after).steps).toMatchObject([
      { type: "deleteDependency", fromKey: "shop", toKey: "shop/b", expectedVersion: 1 },
      { type: "deletePackage", key: "shop/b", expectedVersion: 1 }
    ])
  })

  it("leaves alone what people and agents have noted on a package", () => {
    const noted: CurrentGraph = {
      ...imported,
      packages: imported.packages.map((each) => ({
        ...each,
        properties: { ...each.properties, licenceReview: "done" }
      }))
    }
    expect(planImport(noted, before).steps).toEqual([])
    const after = read({ "": { name: "shop" }, "node_modules/a": { version: "2.0.0" } })
    expect(
      perform(noted, planImport(noted, after)).packages.map((each) => each.properties.licenceReview)
    ).toEqual(["done", "done"])
  })

  it("leaves alone what people and agents have noted on a dependency", () => {
    const noted: CurrentGraph = {
      ...imported,
      dependencies: imported.dependencies.map((each) => ({
        ...each,
        properties: { ...each.properties, audited: "Ada" }
      }))
    }
    expect(planImport(noted, before).steps).toEqual([])
    const after = read({
      "": { name: "shop", dependencies: { a: "^2.0.0", b: "1" } },
      "node_modules/a": { version: "2.0.0" },
      "node_modules/b": {}
    })
    expect(perform(noted, planImport(noted, after)).dependencies.map(({ properties }) => properties)).toEqual(
      [
        { kind: "dependency", range: "^2.0.0", audited: "Ada" },
        { kind: "dependency", range: "1", audited: "Ada" }
      ]
    )
  })

  it("leaves alone a dependency that somebody made by hand between two packages of the file", () => {
    const byHand = (from: string, to: string, properties: Properties, n: number) => ({
      id: RelationshipId.make(uuid(9_000 + n)),
      fromKey: from,
      toKey: to,
      properties,
      untrusted: [],
      version: 1
    })
    const own = [byHand("shop/a", "shop/b", {}, 1), byHand("shop/b", "shop/a", { kind: "build" }, 2)]
    const beside: CurrentGraph = { ...imported, dependencies: [...imported.dependencies, ...own] }
    expect(planImport(beside, before).steps).toEqual([])
    // What the file says of it from now on makes it the file's.
    const stated = read({
      "": { name: "shop", dependencies: { a: "^1.0.0", b: "1" } },
      "node_modules/a": {
        version: "1.0.0",
        license: "MIT",
        engines: { node: ">=18", npm: ">=9" },
        dependencies: { b: "*" }
      },
      "node_modules/b": {}
    })
    const taken = perform(beside, planImport(beside, stated))
    expect(taken.dependencies.find(({ id }) => id === own[0]?.id)?.properties).toEqual({
      kind: "dependency",
      range: "*"
    })
    expect(planImport(taken, before).steps).toMatchObject([{ type: "deleteDependency", id: own[0]?.id }])
  })

  it("keeps one of two dependencies with the same ends", () => {
    const double = imported.dependencies
      .slice(0, 1)
      .map((each) => ({ ...each, id: RelationshipId.make(uuid(9_999)) }))
    const doubled: CurrentGraph = { ...imported, dependencies: [...double, ...imported.dependencies] }
    expect(planImport(doubled, before).steps).toMatchObject([{ type: "deleteDependency", id: uuid(9_999) }])
  })

  it("does not take ends for others whose keys read the same when put together", () => {
    const odd = (fromKey: string, toKey: string): LockGraph => ({
      name: "x",
      packages: ["a", "aa", "aaa"].map((key) => ({ key, properties: {} })),
      dependencies: [{ fromKey, toKey, properties: { kind: "dependency", range: "1" } }]
    })
    const current = perform(empty, planImport(empty, odd("a", "aaa")))
    expect(stepsOf(planImport(current, odd("aaa", "a")))).toEqual(["createDependency", "deleteDependency"])
  })

  const Key = Schema.Literals(["a", "b", "c", "d"])
  const LockProperties = Schema.Struct({
    version: Schema.Literals(["1", "2"]),
    license: Schema.optionalKey(Schema.Literals(["MIT", "ISC"])),
    engines: Schema.optionalKey(
      Schema.Union([
        Schema.Record(Schema.Literals(["node", "npm"]), Schema.Literals([">=1", ">=2"])),
        Schema.Array(Schema.Literal("node"))
      ])
    ),
    dev: Schema.optionalKey(Schema.Literal(true))
  })
  const anyLock = Arbitrary.all({
    packages: Arbitrary.schema(Schema.Record(Key, LockProperties)),
    dependencies: Arbitrary.schema(
      Schema.Array(
        Schema.Struct({
          fromKey: Key,
          toKey: Key,
          properties: Schema.Struct({
            kind: Schema.Literals(["dependency", "dev"]),
            range: Schema.Literals(["1", "2"])
          })
        })
      ).check(Schema.isMaxLength(6))
    )
  }).pipe(
    Arbitrary.map(({ packages, dependencies }): LockGraph => {
      const keys = Object.keys(packages)
      const possible = dependencies.filter((each) => keys.includes(each.fromKey) && keys.includes(each.toKey))
      return {
        name: "shop",
        packages: Object.entries(packages).map(([key, properties]) => ({ key, properties })),
        dependencies: [...new Map(possible.map((each) => [endsOf(each), each])).values()]
      }
    })
  )

  it.prop(
    "performed on any graph, makes it say what the lockfile says, and plans nothing more",
    [anyLock, anyLock],
    ([first, second]) => {
      const current = perform(empty, planImport(empty, first))
      expect(spoken(current)).toEqual(wanted(first))
      const after = perform(current, planImport(current, second))
      expect(spoken(after)).toEqual(wanted(second))
      expect(planImport(after, second)).toEqual({
        steps: [],
        unchangedPackages: second.packages.length,
        unchangedDependencies: second.dependencies.length
      })
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop(
    "is the same whatever the order in which the graph was read",
    [anyLock, anyLock],
    ([first, second]) => {
      const current = perform(empty, planImport(empty, first))
      const turned = {
        packages: current.packages.toReversed(),
        dependencies: current.dependencies.toReversed()
      }
      expect(planImport(turned, second)).toEqual(planImport(current, second))
    }
  )

  it.prop("never brings a package back under another id", [anyLock, anyLock], ([first, second]) => {
    const current = perform(empty, planImport(empty, first))
    const after = new Map(
      perform(current, planImport(current, second)).packages.map((each) => [each.key, each.id])
    )
    for (const { key, id } of current.packages) expect(after.get(key) ?? id).toBe(id)
  })
})
