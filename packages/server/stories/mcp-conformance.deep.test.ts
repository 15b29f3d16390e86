/**
 * The official conformance suite against the door, in both revisions, under Bun.
 *
 * What does not apply, and why, is the table of docs/mcp.md and nothing else.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import { freshDatabase } from "../testing/fresh-database.ts"
import { revisions, sendMessage, opening } from "../testing/mcp-clients.ts"
import { mcpFixtures } from "../testing/mcp-fixtures.ts"
import { runConformance, runScenario } from "../testing/mcp-programs.ts"
import { startServer } from "../testing/platform.ts"
import { tmpdir } from "node:os"

const home = join(import.meta.dirname, "../../..")
const read = (path: string) => readFileSync(join(home, path), "utf8")

/** The scenarios that a revision requires of a server; the list is frozen. */
const requiredBy = (revision: string): ReadonlyArray<string> =>
  parse(read(`node_modules/@modelcontextprotocol/conformance/requirements/${revision}.yaml`)).server

/** The scenarios of the page's table, by revision. */
const excusedFor = (revision: string): ReadonlyArray<string> =>
  [...read("docs/mcp.md").matchAll(/^\| (?<revision>\S+) \| `(?<scenario>[a-z0-9-]+)` \| .+ \|$/gm)]
    .filter(({ groups }) => groups?.["revision"] === revision)
    .map(({ groups }) => groups?.["scenario"] ?? "")
    .toSorted()

/** What the suite said of each scenario, by name: whether something was shown, and nothing failed. */
const verdictsOf = (said: string) =>
  new Map(
    [...said.matchAll(/^\S+ (?<name>[a-z0-9-]+): (?<passed>\d+) passed, (?<failed>\d+) failed$/gm)].map(
      ({ groups }) => [groups?.["name"] ?? "", groups?.["failed"] === "0" && groups?.["passed"] !== "0"]
    )
  )

/** Scenarios that fail when an answer takes longer than a second or so; what the server must do says nothing of that. */
const hasty: ReadonlyArray<string> = ["server-stateless"]

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-conformance-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
)

describe("S003-R08 The MCP door and the official conformance suite", () => {
  it.live("Every scenario that applies passes in both revisions, and the page says which do not", () =>
    Effect.gen(function* () {
      const { url } = yield* startServer(yield* freshDatabase, [], undefined, mcpFixtures)
      const results = yield* folder
      const suites = yield* Effect.forEach(
        revisions,
        (revision) =>
          Effect.map(runConformance(`${url}/mcp-fixtures`, revision, results), (ended) => ({
            ...ended,
            revision
          })),
        { concurrency: 2 }
      )
      yield* Effect.forEach(
        suites,
        Effect.fnUntraced(function* ({ code, revision, said }) {
          const verdicts = verdictsOf(said)
          const late = hasty.filter((name) => verdicts.get(name) === false)
          for (const name of late) {
            const alone = yield* runScenario(`${url}/mcp-fixtures`, revision, name, results)
            expect([name, alone.code, alone.said]).toEqual([name, 0, expect.stringContaining("0 failed")])
            verdicts.set(name, true)
          }
          const required = requiredBy(revision)
          expect(required.length).toBeGreaterThan(25)
          expect(required.filter((name) => verdicts.get(name) !== true)).toEqual([])
          const unshown = [...verdicts].flatMap(([name, isShown]) => (isShown ? [] : [name]))
          expect(unshown.toSorted()).toEqual(excusedFor(revision))
          if (late.length === 0) expect(code).toBe(0)
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("A server has no fixtures by itself", () =>
    Effect.gen(function* () {
      const doors = yield* startServer(yield* freshDatabase)
      expect((yield* sendMessage(doors, "/mcp-fixtures", opening)).status).toBe(404)
    }).pipe(Effect.scoped)
  )
})
