/**
 * Who depends on whom: the copy that Node would load.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { edges, read } from "../../../testing/lockfiles.ts"

describe("dependencies", () => {
  it("lead to the copy that Node would load: the nearest node_modules upwards", () => {
    const graph = read({
      "": { dependencies: { a: "1", b: "1" } },
      "node_modules/a": { dependencies: { b: "2", c: "1" } },
      "node_modules/a/node_modules/b": { dependencies: { c: "1" } },
      "node_modules/b": { dependencies: { c: "1" } },
      "node_modules/c": {}
    })
    expect(edges(graph)).toEqual([
      "shop → shop/a (dependency 1)",
      "shop → shop/b (dependency 1)",
      "shop/a → shop/a/node_modules/b (dependency 2)",
      "shop/a → shop/c (dependency 1)",
      "shop/a/node_modules/b → shop/c (dependency 1)",
      "shop/b → shop/c (dependency 1)"
    ])
  })

  it("of a workspace are looked for in its own folder first, and a link leads to its target", () => {
    const graph = read({
      "": { workspaces: ["packages/*"] },
      "packages/web": { dependencies: { a: "2", "@shop/core": "*", b: "1" } },
      "packages/web/node_modules/a": {},
      "packages/core": {},
      "node_modules/@shop/core": { resolved: "packages/core", link: true },
      "node_modules/a": {},
      "node_modules/b": {}
    })
    expect(edges(graph)).toEqual([
      "shop/packages/web → shop/b (dependency 1)",
      "shop/packages/web → shop/packages/core (dependency *)",
      "shop/packages/web → shop/packages/web/node_modules/a (dependency 2)"
    ])
  })

  it("of a scoped package are found beside it", () => {
    const graph = read({
      "": {},
      "node_modules/@s/a": { dependencies: { "@s/b": "1" } },
      "node_modules/@s/b": {},
      "node_modules/x/node_modules/@s/b": {}
    })
    expect(edges(graph)).toEqual(["shop/@s/a → shop/@s/b (dependency 1)"])
  })

  it("of a folder outside the project do not reach into it", () => {
    expect(edges(read({ "": {}, "../lib": { dependencies: { a: "1" } }, "node_modules/a": {} }))).toEqual([])
    expect(
      edges(read({ "": {}, "../lib": { dependencies: { a: "1" } }, "../lib/node_modules/a": {} }))
    ).toEqual(["shop/../lib → shop/../lib/node_modules/a (dependency 1)"])
  })

  it("that are not installed are left out", () => {
    expect(
      edges(
        read({
          "": { optionalDependencies: { a: "1" }, dependencies: { b: "1" } },
          "node_modules/b": { peerDependencies: { c: "1" } }
        })
      )
    ).toEqual(["shop → shop/b (dependency 1)"])
    expect(
      edges(read({ "": { dependencies: { a: "1" } }, "node_modules/a": { resolved: "gone", link: true } }))
    ).toEqual([])
  })

  it("of a package on itself are left out: an object is not related to itself", () => {
    const graph = read({ "": { dependencies: { a: "1" } }, "node_modules/a": { dependencies: { a: "1" } } })
    expect(edges(graph)).toEqual(["shop → shop/a (dependency 1)"])
  })

  it("for development are those of the project and its folders only", () => {
    const graph = read({
      "": { devDependencies: { a: "1" } },
      "packages/web": { devDependencies: { a: "2" } },
      "node_modules/a": { devDependencies: { b: "1" } },
      "node_modules/b": {}
    })
    expect(edges(graph)).toEqual(["shop → shop/a (dev 1)", "shop/packages/web → shop/a (dev 2)"])
  })

  it("from one package to another are one edge, of the strongest kind", () => {
    const all = {
      dependencies: { a: "1" },
      optionalDependencies: { a: "2" },
      peerDependencies: { a: "3" },
      devDependencies: { a: "4" }
    }
    const { dependencies, ...weaker } = all
    const { optionalDependencies, ...weak } = weaker
    const { peerDependencies, ...weakest } = weak
    const kinds = [all, weaker, weak, weakest].map((entry) =>
      edges(read({ "": entry, "node_modules/a": {} }))
    )
    expect(kinds).toEqual([
      ["shop → shop/a (dependency 1)"],
      ["shop → shop/a (optional 2)"],
      ["shop → shop/a (peer 3)"],
      ["shop → shop/a (dev 4)"]
    ])
    expect([dependencies, optionalDependencies, peerDependencies]).toHaveLength(3)
  })

  it("by two names for one folder are one edge", () => {
    const link = { resolved: "lib", link: true }
    expect(
      edges(
        read({
          "": { peerDependencies: { a: "1" }, dependencies: { b: "2" } },
          lib: {},
          "node_modules/a": link,
          "node_modules/b": link
        })
      )
    ).toEqual(["shop → shop/lib (dependency 2)"])
  })

  it("hold no secret in their range", () => {
    expect(
      edges(
        read({
          "": { dependencies: { a: "git+https://me:secret@example.org/a.git#v1" } },
          "node_modules/a": {}
        })
      )
    ).toEqual(["shop → shop/a (dependency git+https://example.org/a.git#v1)"])
  })

  const Name = Schema.Literals(["a", "b", "c"])
  const anyTree = Arbitrary.array(
    Arbitrary.all([
      Arbitrary.array(Arbitrary.schema(Name), { maxLength: 3 }),
      Arbitrary.schema(Schema.Array(Name).check(Schema.isMaxLength(3)))
    ]),
    { maxLength: 12 }
  )

  it.prop(
    "lead where the algorithm of Node's manual leads, in any tree",
    [anyTree],
    ([tree]) => {
      const packages: Record<string, { readonly dependencies: Record<string, string> }> = {}
      for (const [names, wanted] of tree)
        packages[names.map((name) => `node_modules/${name}`).join("/")] = {
          dependencies: Object.fromEntries(wanted.map((name) => [name, "1"]))
        }
      const expected = Object.entries(packages).flatMap(([path, { dependencies }]) =>
        Object.keys(dependencies).flatMap((name) => {
          // NODE_MODULES_PATHS: each folder from the package's own to the project's, those named node_modules left out.
          const parts = path === "" ? [] : path.split("/")
          const folders = Array.from({ length: parts.length + 1 }, (_, index) =>
            parts.slice(0, parts.length - index)
          ).filter((folder) => folder.at(-1) !== "node_modules")
          const found = folders
            .map((folder) => [...folder, "node_modules", name].join("/"))
            .find((candidate) => candidate in packages)
          return found === undefined || found === path ? [] : [`${path} → ${found}`]
        })
      )
      const graph = read(packages)
      const pathOf = new Map(graph.packages.map(({ key, properties }) => [key, properties.path]))
      const actual = graph.dependencies.map(
        ({ fromKey, toKey }) => `${String(pathOf.get(fromKey))} → ${String(pathOf.get(toKey))}`
      )
      expect(actual.toSorted()).toEqual(expected.toSorted())
    },
    { arbitrary: { runs: 300, size: 12 } }
  )
})
