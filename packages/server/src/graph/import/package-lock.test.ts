/**
 * A package-lock.json as a graph of packages, also when it is hostile or large.
 *
 * Dependencies and refusals have files of their own beside this one.
 */
import { describe, expect, it } from "@effect/vitest"
import { findPropertiesFault } from "@tropism/domain/json"
import { Arbitrary, Cause, Duration, Effect, Exit, Schema } from "effect"
import { edges, fileOf, propertiesOf, read, refusal } from "../../../testing/lockfiles.ts"
import { importedProperties } from "./package-importer.ts"
import { InvalidLockfile, readPackageLock } from "./package-lock.ts"

describe("packages", () => {
  const graph = read({
    "": {
      name: "shop",
      version: "1.2.0",
      license: "UNLICENSED",
      workspaces: ["packages/*"],
      dependencies: { a: "^1.0.0" }
    },
    "packages/web": { name: "@shop/web", version: "0.1.0", dependencies: { a: "^2.0.0" } },
    "packages/web/node_modules/a": {
      version: "2.0.0",
      resolved: "https://registry.npmjs.org/a/-/a-2.0.0.tgz",
      dev: true
    },
    "node_modules/@shop/web": { resolved: "packages/web", link: true },
    "node_modules/a": {
      version: "1.4.0",
      resolved: "https://registry.npmjs.org/a/-/a-1.4.0.tgz",
      integrity: "sha512-x",
      license: "MIT",
      hasInstallScript: true,
      deprecated: "use b",
      engines: { node: ">=18" },
      funding: { url: "https://example.org" },
      cpu: ["x64"],
      peer: true,
      optional: true,
      devOptional: false
    },
    "node_modules/a/node_modules/@s/b": { version: "3.0.0" }
  })

  it("are one object each, keyed by the project's name and the path, and a link is none", () => {
    expect(graph.name).toBe("shop")
    expect(graph.packages.map((each) => each.key)).toEqual([
      "shop",
      "shop/a",
      "shop/a/node_modules/@s/b",
      "shop/packages/web",
      "shop/packages/web/node_modules/a"
    ])
  })

  it("carry what the lockfile says of them, and no field that it does not", () => {
    expect(propertiesOf(graph, "shop/a")).toEqual({
      name: "a",
      path: "node_modules/a",
      lockfile: "shop",
      source: "registry",
      version: "1.4.0",
      license: "MIT",
      hasInstallScript: true,
      deprecated: "use b",
      engines: { node: ">=18" },
      peer: true,
      optional: true
    })
    expect(propertiesOf(graph, "shop/a/node_modules/@s/b")).toEqual({
      name: "@s/b",
      path: "node_modules/a/node_modules/@s/b",
      lockfile: "shop",
      source: "registry",
      version: "3.0.0"
    })
    expect(propertiesOf(graph, "shop")).toMatchObject({
      name: "shop",
      path: "",
      source: "root",
      version: "1.2.0",
      license: "UNLICENSED"
    })
    expect(propertiesOf(graph, "shop/packages/web")).toMatchObject({ name: "@shop/web", source: "workspace" })
  })

  it("set no property that an import does not call its own", () => {
    for (const { properties } of graph.packages)
      expect(Object.keys(properties).filter((name) => !importedProperties.has(name))).toEqual([])
  })

  it("bear the name in the entry when they are installed under another", () => {
    const { packages } = read({ "": {}, "node_modules/old-a": { name: "a", version: "0.9.0" } })
    expect(packages.map((each) => each.properties.name)).toEqual(["shop", "a"])
  })

  it("of a project without a name are keyed by the file's, or by the one beside it", () => {
    expect(read({ "": { version: "1.0.0" } }).name).toBe("shop")
    const nameless = fileOf({ "": {} }, { name: "" })
    expect(Effect.runSync(readPackageLock(nameless, "folder")).packages).toEqual([
      { key: "folder", properties: { name: "folder", path: "", lockfile: "folder", source: "root" } }
    ])
    expect(refusal(nameless).faults).toEqual([{ pointer: "name", message: expect.any(String) }])
  })

  it("a folder of the project and an installed package of the same path are two objects", () => {
    const graph = read({
      "": { workspaces: ["web"] },
      web: { name: "web-app" },
      "node_modules/web-app": { resolved: "web", link: true },
      "node_modules/web": { version: "1.0.0" }
    })
    expect(graph.packages.map((each) => each.key)).toEqual(["shop", "shop/./web", "shop/web"])
  })

  it("are read from lockfileVersion 2 as from 3, and from a file that begins with a byte order mark", () => {
    const packages = { "": { name: "shop" }, "node_modules/a": { version: "1.0.0" } }
    const two = Effect.runSync(
      readPackageLock(
        `\ufeff${fileOf(packages, { lockfileVersion: 2, dependencies: { a: { version: "1.0.0" } } })}`
      )
    )
    expect(two).toEqual(read(packages))
  })

  it("come in the same order whatever the order in the file", () => {
    const packages = {
      "": {},
      "node_modules/b": { dependencies: { a: "1", c: "1" } },
      "node_modules/a": {},
      "node_modules/c": {}
    }
    expect(read(Object.fromEntries(Object.entries(packages).toReversed()))).toEqual(read(packages))
  })
})

describe("engines", () => {
  it.each<[Schema.Json, Schema.Json | undefined]>([
    [{ node: ">=18", npm: null, yarn: 1 }, { node: ">=18" }],
    [["node >=0.6"], ["node >=0.6"]],
    [{}, undefined],
    ["node", undefined]
  ])("%j is %j", (engines, kept) => {
    expect(propertiesOf(read({ "": {}, "node_modules/a": { engines } }), "shop/a")?.engines).toEqual(kept)
  })
})

describe("a hostile file", () => {
  it("may call its packages __proto__ and constructor", () => {
    const graph = read(
      JSON.parse(
        `{"":{"dependencies":{"__proto__":"1","constructor":"2","toString":"3"}},"node_modules/__proto__":{},"node_modules/constructor":{}}`
      )
    )
    expect(edges(graph)).toEqual([
      "shop → shop/__proto__ (dependency 1)",
      "shop → shop/constructor (dependency 2)"
    ])
    expect(propertiesOf(graph, "shop/__proto__")).toEqual({
      name: "__proto__",
      path: "node_modules/__proto__",
      lockfile: "shop",
      source: "registry"
    })
  })

  it("may nest a hundred thousand deep", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    expect(refusal(deep).faults).toMatchObject([{ pointer: "" }])
    expect(refusal("[".repeat(100_000)).message).toContain("100001")
    const graph = Effect.runSync(
      readPackageLock(
        `{"name":"shop","lockfileVersion":3,"packages":{"node_modules/a":{"license":${deep},"engines":${deep},"funding":${deep}}}}`
      )
    )
    expect(graph.packages).toHaveLength(1)
  })

  it("may link in circles", () => {
    const graph = read({
      "": { dependencies: { a: "1" } },
      "node_modules/a": { resolved: "node_modules/b", link: true },
      "node_modules/b": { resolved: "node_modules/a", link: true }
    })
    expect(graph.packages).toHaveLength(1)
    expect(graph.dependencies).toEqual([])
  })

  const anyPath = Arbitrary.schema(
    Schema.Literals([
      "",
      "a",
      "node_modules/a",
      "node_modules/a/node_modules/b",
      "node_modules/",
      "node_modules",
      "/",
      "../x",
      "..",
      "__proto__",
      "node_modules/__proto__",
      "packages/x/node_modules/a"
    ])
  )
  const anyEntry = Arbitrary.schema(
    Schema.Union([
      Schema.Json,
      Schema.Record(
        Schema.Literals([
          "name",
          "version",
          "license",
          "link",
          "resolved",
          "engines",
          "dependencies",
          "peerDependencies",
          "dev"
        ]),
        Schema.Json
      )
    ])
  )

  it.prop(
    "is read or refused, whatever it holds, and what is read may be kept",
    [Arbitrary.array(Arbitrary.all([anyPath, anyEntry]), { maxLength: 8 })],
    ([entries]) => {
      const exit = Effect.runSyncExit(readPackageLock(fileOf(Object.fromEntries(entries))))
      if (Exit.isFailure(exit)) return expect(Cause.squash(exit.cause)).toBeInstanceOf(InvalidLockfile)
      const keys = new Set(exit.value.packages.map((each) => each.key))
      expect(keys.size).toBe(exit.value.packages.length)
      for (const { properties } of exit.value.packages)
        expect(findPropertiesFault(properties)).toBeUndefined()
      for (const { fromKey, toKey } of exit.value.dependencies)
        expect(keys.has(fromKey) && keys.has(toKey)).toBe(true)
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop("is read or refused, whatever JSON it is", [Arbitrary.schema(Schema.Json)], ([value]) => {
    expect(refusal(JSON.stringify(value)).faults).toHaveLength(1)
  })
})

describe("a large file", () => {
  const large = (count: number) => {
    const range = (index: number) =>
      Object.fromEntries([1, 2, 3, 4].map((step) => [`p${(index * 7 + step * 13) % count}`, "^1.0.0"]))
    const entry = (index: number) => [
      `node_modules/p${index}`,
      {
        version: "1.0.0",
        license: "MIT",
        integrity: "x".repeat(95),
        engines: { node: ">=18" },
        dependencies: range(index)
      }
    ]
    return fileOf({
      "": { name: "shop" },
      ...Object.fromEntries(Array.from({ length: count }, (_, index) => entry(index)))
    })
  }

  it.live("of 5,000 packages is read in a time that grows with the file and not with its square", () =>
    Effect.gen(function* () {
      const reading = (count: number, times: number) =>
        Effect.timed(Effect.replicateEffect(readPackageLock(large(count)), times))
      // As many packages each time, by turns: on a busy machine both take longer alike.
      const rounds = yield* Effect.replicateEffect(Effect.all([reading(50, 100), reading(5_000, 1)]), 5)
      expect(rounds.map(([, [, [graph]]]) => [graph?.packages.length, graph?.dependencies.length])).toEqual(
        // Some ask for themselves.
        rounds.map(() => [5_001, 19_996])
      )
      const bestMs = (taken: ReadonlyArray<readonly [Duration.Duration, unknown]>) =>
        Math.min(...taken.map(([elapsed]) => Duration.toMillis(elapsed)))
      const [few, many] = [bestMs(rounds.map(([one]) => one)), bestMs(rounds.map(([, other]) => other))]
      // About as long when each package costs the same, a hundred times as long when each looks at all others.
      expect(many / few).toBeLessThan(15)
    })
  )
})
