/**
 * Proves that each rule complains: a bad text for every rule, and a good one beside it.
 *
 * A rule without a proof does not type-check, because `proofs` has one entry
 * for each name in `rules`.
 */
import { describe, expect, it } from "vitest"
import type { SourceFile } from "./source-text.ts"
import { codeOnly, importsOf, withoutComments } from "./source-text.ts"
import { findUnusedFaces, mayImport } from "./staircase.ts"
import { maxFunctionLines, rules } from "./tidy-rules.ts"

interface Proof {
  /** Path, text, and a part of the complaint it must cause. */
  readonly bad: ReadonlyArray<readonly [path: string, text: string, says: string]>
  readonly good: ReadonlyArray<readonly [path: string, text: string]>
}

const server = "packages/server/src"
const header = "/**\n * Keeps the rows of runs.\n */\n"

const proofs: Readonly<Record<keyof typeof rules, Proof>> = {
  staircase: {
    bad: [
      [`${server}/graph/graph.ts`, 'import { Runs } from "../runs/runs.ts"', "graph imports from runs"],
      [`${server}/graph/graph.ts`, 'import type { Runs } from "../runs/runs.ts"', "graph imports from runs"],
      [`${server}/review/tasks.ts`, 'export * from "../tools/gate.ts"', "review imports from tools"],
      [`${server}/review/tasks.ts`, 'const gate = import("../tools/gate.ts")', "review imports from tools"],
      [`${server}/agents/turn.ts`, 'import { Graph } from "../graph/graph.ts"', "agents imports from graph"],
      [`${server}/graph/graph.ts`, 'import { x } from "../models/models.ts"', "graph imports from models"],
      [`${server}/limits.ts`, 'import { x } from "./runs/runs.ts"', "limits imports from runs"],
      [`${server}/runs/x.ts`, 'import { x } from "../outbox/never.ts"', "private to outbox"],
      [`${server}/basement/x.ts`, "", '"basement" is no stair'],
      [`${server}/runs/x.ts`, 'import { x } from "../../../domain/src/run.ts"', "outside its own package"],
      [
        `${server}/runs/x.ts`,
        'import { x } from "../../testing/fresh-database.ts"',
        "outside its own package"
      ],
      ["packages/domain/src/run.ts", 'import { Pool } from "pg"', "only effect's root modules"],
      ["packages/domain/src/run.ts", 'import { x } from "effect/ai"', "only effect's root modules"],
      ["packages/domain/src/run.ts", 'import { x } from "@tropism/api/api"', "domain must not import"],
      ["packages/api/src/api.ts", 'import { x } from "jose"', "only domain and effect"],
      ["packages/console/src/app.tsx", 'import { x } from "@tropism/server/main"', "console must not import"],
      ["packages/cli/src/tasks.ts", 'import("@tropism/server/main")', "cli must not import"],
      ["packages/client/src/client.ts", 'import { x } from "@tropism/cli/start"', "client must not import"]
    ],
    good: [
      [
        `${server}/runs/runs.ts`,
        'import { Gateway } from "../graph/gateway.ts"\nimport { x } from "./private.ts"'
      ],
      [
        `${server}/graph/graph.ts`,
        'import { maxDepth } from "../limits.ts"\nimport { Schema } from "effect"'
      ],
      [
        `${server}/agents/turn.ts`,
        'import { Models } from "../models/models.ts"\nimport { x } from "../database/database.ts"'
      ],
      [
        `${server}/graph/graph.ts`,
        '// import { Runs } from "../runs/runs.ts"\nconst x = \'import "../runs/runs.ts"\''
      ],
      [`${server}/graph/graph.test.ts`, 'import { Runs } from "../runs/runs.ts"'],
      [
        "packages/domain/src/run.ts",
        'import { Schema } from "effect"\nimport * as S from "effect/Schema"\nimport { x } from "./ids.ts"'
      ],
      [
        "packages/api/src/api.ts",
        'import { HttpApi } from "effect/http-api"\nimport { Run } from "@tropism/domain/run"'
      ],
      ["packages/cli/src/start.ts", 'const main = () => import("@tropism/server/main")']
    ]
  },
  header: {
    bad: [
      ["scripts/x.ts", 'import { x } from "y"', "without a header"],
      ["scripts/x.ts", "// Keeps the rows of runs.\n", "without a header"],
      ["scripts/x.ts", "/** runs */", "not a sentence"],
      ["packages/server/src/database/a.sql", "create table x ();", "without a header"],
      [".ci/run", "#!/usr/bin/env bash\nset -e\n", "without a header"]
    ],
    good: [
      ["scripts/x.ts", header],
      ["packages/cli/bin/tropism.mjs", `#!/usr/bin/env node\n${header}`],
      [".ci/run", "#!/usr/bin/env bash\n# Builds and checks a clean clone.\nset -e\n"]
    ]
  },
  names: {
    bad: [
      [`${server}/runs/index.ts`, "", "index file"],
      [`${server}/runs/runStore.ts`, "", "kebab-case"],
      [`${server}/runs/run-helpers.ts`, "", "says nothing"],
      [`${server}/utils/x.ts`, "", "says nothing"],
      [`${server}/runs/runs.ts`, "export class RunManager {}", "exports RunManager"],
      [`${server}/runs/runs.ts`, "export const runData = 1", "exports runData"],
      [`${server}/runs/runs.ts`, "export interface RunV2 {}", "exports RunV2"],
      [`${server}/runs/runs.ts`, "const a = 1\nexport { a as toolService }", "exports toolService"],
      [`${server}/runs/runs.ts`, "export const info = 1", "exports info"],
      [`${server}/runs/runs.ts`, "export const CHAT_UTILS = 1", "exports CHAT_UTILS"]
    ],
    good: [
      [
        `${server}/runs/runs.ts`,
        'export class Runs {}\nexport const metadata = 1\nconst x = "export class RunManager"'
      ],
      ["packages/console/src/run-list.tsx", "export const RunList = () => null"]
    ]
  },
  testCode: {
    bad: [
      [`${server}/models/fake-clock.ts`, "", "fake-clock.ts"],
      [`${server}/mcp/fixtures.ts`, "", "fixtures.ts"],
      ["packages/domain/src/log-for-tests.ts", "", "log-for-tests.ts"]
    ],
    good: [
      ["packages/server/testing/fake-clock.ts", ""],
      [`${server}/runs/fake-runs.test.ts`, ""],
      [`${server}/runs/stubborn-runs.ts`, ""]
    ]
  },
  length: {
    bad: [["scripts/x.ts", "x\n".repeat(701), "has 701 lines"]],
    good: [["scripts/x.ts", "x\n".repeat(700)]]
  },
  functions: {
    bad: [
      [
        "scripts/x.ts",
        `const f = () => {\n${"  x()\n".repeat(maxFunctionLines + 1)}}`,
        `function of ${maxFunctionLines + 1} lines`
      ],
      [
        "scripts/x.ts",
        `function f(a: { b: string }): string {\n${"  x()\n".repeat(maxFunctionLines + 1)}}`,
        `function of ${maxFunctionLines + 1} lines`
      ],
      [
        "scripts/x.ts",
        `Effect.gen(function* () {\n${"  x()\n".repeat(maxFunctionLines + 1)}})`,
        `function of ${maxFunctionLines + 1} lines`
      ]
    ],
    good: [
      ["scripts/x.ts", `const f = () => {\n${"  x()\n\n  // y\n".repeat(maxFunctionLines)}}`],
      ["scripts/x.ts", `const f = () => {\n${"  const g = () => {\n    x()\n  }\n".repeat(30)}}`],
      [
        "scripts/x.ts",
        `const f = {\n${"  x,\n".repeat(maxFunctionLines + 1)}}\nclass A {\n${"  x = 1\n".repeat(maxFunctionLines + 1)}}`
      ],
      [`${server}/runs/runs.test.ts`, `it("x", () => {\n${"  x()\n".repeat(maxFunctionLines + 1)}})`]
    ]
  },
  graphWrites: {
    bad: [
      [
        `${server}/runs/runs.ts`,
        "sql`insert into kb.graph_objects (id) values (1)`",
        "insert into kb.graph_objects"
      ],
      [
        `${server}/runs/runs.ts`,
        "sql`UPDATE\n  kb.graph_relationships set x = 1`",
        "UPDATE kb.graph_relationships"
      ],
      [`${server}/graph/importer.ts`, "sql`update kb.graph_objects set x = 1`", "update kb.graph_objects"],
      [`${server}/runs/runs.ts`, 'sql`delete from ${sql("kb.graph_objects")}`', "delete from"],
      [`${server}/runs/runs.ts`, 'sql`delete from "kb"."graph_object_versions"`', "delete from"],
      [`${server}/outbox/outbox.ts`, "sql`delete from kb.graph_events`", "delete from kb.graph_events"],
      [`${server}/outbox/outbox.ts`, "sql`update kb.graph_objects set x = 1`", "update kb.graph_objects"],
      ["packages/cli/src/import.ts", "`truncate kb.graph_events`", "truncate kb.graph_events"]
    ],
    good: [
      [`${server}/graph/creations.ts`, "sql`insert into kb.graph_objects (id) values (1)`"],
      [`${server}/database/migrations/0001-graph.ts`, "sql`update kb.graph_events set x = 1`"],
      [`${server}/outbox/outbox.ts`, "sql`update kb.graph_events set dispatched_at = now()`"],
      [
        `${server}/runs/runs.ts`,
        "sql`select * from kb.graph_objects for update`\n// insert into kb.graph_objects"
      ]
    ]
  },
  rawRuntime: {
    bad: [
      [`${server}/runs/runs.ts`, "try { x() } catch {}", "uses try"],
      ["packages/domain/src/run.ts", "const now = new Date()", "wall clock"],
      [`${server}/runs/runs.ts`, "const run = row as unknown as Run", "casts through unknown"],
      [`${server}/runs/runs.ts`, 'import { readFileSync } from "node:fs"', "node's file system"]
    ],
    good: [
      [`${server}/runs/runs.ts`, "Effect.try({ try: f, catch: g })\n// try { }\nconst at = new Date(millis)"],
      [`${server}/main.ts`, "try { x() } catch {}"],
      ["scripts/x.ts", 'import { readFileSync } from "node:fs"'],
      [`${server}/database/x.test.ts`, 'import { statSync } from "node:fs"']
    ]
  },
  unbounded: {
    bad: [
      [`${server}/runs/runs.ts`, "const queue = yield* Queue.unbounded<number>()", "Queue.unbounded"],
      [`${server}/runs/runs.ts`, 'Effect.forEach(x, f, { concurrency: "unbounded" })', "without a bound"]
    ],
    good: [[`${server}/runs/runs.ts`, "Queue.bounded(limits.queue)"]]
  },
  exceptions: {
    bad: [
      ["scripts/x.ts", "// oxlint-disable-next-line no-console", "without saying why"],
      ["scripts/x.ts", "// @ts-expect-error", "without saying why"]
    ],
    good: [["scripts/x.ts", "// oxlint-disable-next-line no-console -- the user reads it here"]]
  },
  sleepers: {
    bad: [
      [`${server}/runs/runs.test.ts`, "setTimeout(done, 10)", "setTimeout"],
      [`${server}/runs/runs.test.ts`, 'yield* Effect.sleep("1 second")', "Effect.sleep"],
      ["packages/server/stories/review.test.ts", "await Bun.sleep(5)", "Bun.sleep"]
    ],
    good: [
      [`${server}/runs/runs.test.ts`, 'yield* Effect.sleep("1 second")\nyield* TestClock.adjust("1 second")'],
      ["packages/server/simulation/simulation.deep.test.ts", 'yield* Effect.sleep("1 second")']
    ]
  },
  skipped: {
    bad: [
      [`${server}/runs/runs.test.ts`, 'it.skip("x", () => {})', "it.skip"],
      [`${server}/runs/runs.test.ts`, 'it.effect.only("x", () => f)', "it.effect.only"],
      [`${server}/runs/runs.test.ts`, 'describe.todo("x")', "describe.todo"],
      [`${server}/runs/runs.test.ts`, 'it.skipIf(true)("x", f)', "it.skipIf"],
      [`${server}/runs/runs.test.ts`, 'xit("x", f)', "xit"]
    ],
    good: [
      [`${server}/runs/runs.test.ts`, 'it("says it.skip is refused", f) // it.only('],
      [`${server}/runs/x.ts`, "list.only()"]
    ]
  },
  standsAlone: {
    bad: [
      ["docs/x.md", "see ../shared" + "/STYLE.md", "which a reader of this repository does not have"],
      [`${server}/runs/x.ts`, "// (DES" + "IGN §4)", "DES" + "IGN"],
      ["specs/requirements.md", "see DES" + "IGN.md", "DES" + "IGN"],
      ["README.md", "cd /ho" + "me/someone/tropism", "someone"]
    ],
    good: [["docs/x.md", "see docs/architecture.md and ~/.tropism"]]
  }
}

const file = (path: string, text: string): SourceFile => ({ path, text })

describe.each(Object.entries(proofs))("the rule %s", (name, proof) => {
  const find = (path: string, text: string) => rules[name as keyof typeof rules].find([file(path, text)])

  it.each(proof.bad.map((example, at) => [at + 1, ...example] as const))(
    "complains about bad text %i in %s",
    (_, path, text, says) => {
      const messages = find(path, text).map((complaint) => complaint.message)
      expect(messages).toHaveLength(1)
      expect(messages[0]).toContain(says)
    }
  )

  it.each(proof.good.map((example, at) => [at + 1, ...example] as const))(
    "accepts good text %i in %s",
    (_, path, text) => {
      expect(find(path, text)).toEqual([])
    }
  )
})

describe("the scanner", () => {
  it("says the line of what it found", () => {
    expect(rules.rawRuntime.find([file(`${server}/runs/x.ts`, "a\n/* b\n */\ntry {")])[0]?.line).toBe(4)
  })

  it("sees code inside a template and nothing else of it", () => {
    expect(codeOnly("`try { ${f({ a: `b` })} }`; c")).toBe("`      ${f({ a: ` ` })}  `; c")
  })

  it("takes a regular expression for text and a division for code", () => {
    expect(codeOnly("x = /[\"'/*]/g; y = a / b")).toBe(
      "x =          g; y = a / b".replace("=          g", "=         g")
    )
    expect(codeOnly("z = a / b / c // d")).toBe("z = a / b / c     ")
  })

  it("keeps an address in a string when it drops comments", () => {
    expect(withoutComments('get("http://x") // y')).toBe('get("http://x")     ')
  })

  it("finds imports of every form and none in strings", () => {
    const text =
      'import type { A } from "./a.ts"\nimport "./b.css"\nexport { c } from "./c.ts"\nArray.from("d")\n`import "./e.ts"`'
    expect(importsOf(text).map((found) => found.specifier)).toEqual(["./a.ts", "./b.css", "./c.ts"])
  })
})

describe("the stairs", () => {
  it("lead down, with agent and model on a flight of their own", () => {
    expect(mayImport("main", "database")).toBe(true)
    expect(mayImport("http", "mcp")).toBe(false)
    expect(mayImport("tools", "agents")).toBe(true)
    expect(mayImport("agents", "outbox")).toBe(true)
    expect(mayImport("agents", "models")).toBe(true)
    expect(mayImport("models", "agents")).toBe(false)
    expect(mayImport("database", "outbox")).toBe(false)
  })

  it("list as public only what another module imports", () => {
    const messages = (text: string) =>
      findUnusedFaces([file(`${server}/runs/x.ts`, text)]).map(({ message }) => message)
    const unused = "lists graph/gateway as public, but no other module imports it"
    expect(messages("")).toContain(unused)
    expect(messages('import { Gateway } from "../graph/gateway.ts"')).not.toContain(unused)
  })
})
