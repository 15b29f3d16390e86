/**
 * What operators are given, held against a running server: alarms, the dashboard and the runbooks speak of what is there.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import { freeAddress } from "../testing/cluster-servers.ts"
import { openStream } from "../testing/event-stream.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { calls, says, wiredAgent, wiredStory, wireModel } from "../testing/model-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, newStory, startServer, storyKeys } from "../testing/platform.ts"
import { parsePrometheus } from "../testing/prometheus.ts"
import { make, watcher } from "../testing/story-words.ts"

const read = (path: string): string => readFileSync(join(import.meta.dirname, "../../..", path), "utf8")

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly runbook_url: string; readonly summary: string }
}

const rules: ReadonlyArray<Rule> = parse(read("ops/alerts.yml")).groups.flatMap(
  (group: { readonly rules: ReadonlyArray<Rule> }) => group.rules
)

const panels: ReadonlyArray<{ readonly targets: ReadonlyArray<{ readonly expr: string }> }> = JSON.parse(
  read("ops/grafana-dashboard.json")
).panels

const runbooks = read("docs/runbooks.md")

/** The figures that the page tells of. */
const onPage = new Set(
  [...read("docs/observability.md").matchAll(/`((?:tropism|process|effect)_[a-z_]+)`/g)].map(
    ([, name]) => name
  )
)

/** The names of figures in a query. */
const namesIn = (query: string): ReadonlyArray<string> => query.match(/\b(?:tropism|process)_[a-z_]+/g) ?? []

it("each alarm has a section in the runbooks, and each section an alarm", () => {
  const sections = [...runbooks.matchAll(/^## (\w+)$/gm)].map(([, name = ""]) => name)
  expect(rules.length).toBeGreaterThan(0)
  expect(sections).toEqual(rules.map(({ alert }) => alert))
  for (const { alert, annotations } of rules)
    expect(annotations.runbook_url).toBe(`docs/runbooks.md#${alert.toLowerCase()}`)
  for (const section of runbooks.split(/^## /m).slice(1))
    for (const word of ["It means", "Users notice", "Look", "Do", "Do not"])
      expect(section).toContain(`**${word}:**`)
})

it.live("every figure of an alarm and of the dashboard is told by a server that has worked", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const { story } = yield* wiredStory([
        calls({ id: "c1", tool: "create_object", arguments: { type: "Note", properties: {} } }),
        says("Done.")
      ])
      const agent = yield* story.post("/agents", {
        ...wiredAgent,
        model: { ...wireModel, price: { inputPerMillion: 1, outputPerMillion: 1 } }
      })
      yield* story.post(`/agents/${agent.id}/trigger`)
      yield* story.post("/agents", { ...watcher(), model: wireModel })
      yield* make(story, "Person")
      yield* eventually(story.send("GET", "/metrics"), ({ body }) =>
        body.includes("tropism_reaction_lag_seconds")
      )
      const guess = story.send("GET", "/metrics", undefined, { authorization: "Bearer guessed" })
      // Whoever guesses a hundred times in a minute is refused.
      yield* Effect.repeat(
        Effect.all(
          Array.from({ length: 30 }, () => guess),
          { concurrency: "unbounded" }
        ),
        {
          until: (answers) => answers.some(({ status }) => status === 429)
        }
      )
      const told = new Set<string>()
      const { body } = yield* story.send("GET", "/metrics")
      // An alarm about what is not there is on for ever where nobody tells it by that name and label.
      const missed = rules.flatMap(({ expr }) => [...expr.matchAll(/absent\((tropism_[^)]+)\)/g)])
      expect(missed.length).toBeGreaterThan(0)
      for (const [, series] of missed) expect(body).toContain(`\n${series} `)
      for (const [name, { type }] of parsePrometheus(body))
        for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""])
          told.add(`${name}${suffix}`)
      const queries = [
        ...rules.map(({ expr }) => expr),
        ...panels.map(({ targets }) => targets[0]?.expr ?? "")
      ]
      expect(queries.filter((query) => namesIn(query).length === 0 && !query.startsWith("up{"))).toEqual([])
      expect(queries.flatMap(namesIn).filter((name) => !told.has(name))).toEqual([])
      const names = [...told].map((name) => name.replace(/_(bucket|sum|count)$/, ""))
      expect(names.filter((name) => !onPage.has(name))).toEqual([])
      // What the server tells is shown: a figure that nobody sees is none.
      const shown = new Set(queries.flatMap(namesIn).map((name) => name.replace(/_(bucket|sum|count)$/, "")))
      expect(
        [...told].map((name) => name.replace(/_(bucket|sum|count)$/, "")).filter((name) => !shown.has(name))
      ).toEqual([])
    })
  )
)

it.live("every figure of a server that works with others stands on the page", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const doors = yield* startServer(access, [], undefined, undefined, storyKeys, yield* freeAddress)
      const story = yield* newProject(doors, access)
      // What the library counts has no help, which the format does not ask for.
      const scrape = Effect.map(story.send("GET", "/metrics"), ({ body }) =>
        [...String(body).matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name)
      )
      // Somebody who watches a context takes its place in the cluster.
      const context = yield* story.post("/contexts", { name: "watched" })
      yield* openStream(story, `/api/projects/${story.projectId}/contexts/${context.name}/events?after=start`)
      const told = yield* eventually(scrape, (seen) => seen.includes("effect_cluster_entities"))
      expect(told.filter((name) => !onPage.has(name))).toEqual([])
    })
  )
)

it.live("every statement of the runbooks runs", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const story = yield* newStory
      const statements = [...runbooks.matchAll(/```sql\n([^`]+)```/g)].map(([, text = ""]) => text)
      expect(statements.length).toBeGreaterThan(4)
      for (const statement of statements) {
        expect(statement).toMatch(/^select /)
        yield* ask(story.access, statement)
      }
    })
  )
)
