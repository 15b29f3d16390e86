/**
 * `tropism conversations`: one's own listed, read, renamed, deleted and exported.
 */
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { conversation } from "../../testing/fake-conversations.ts"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { agent, at } from "../../testing/records.ts"

const server = Effect.suspend(() =>
  fakeServer({
    agents: [agent(1, { name: "TodoAssistant" }), agent(2, { name: "helper" })],
    conversations: [
      conversation(2, "Groceries", [
        { role: "user", content: "Add milk" },
        {
          role: "assistant",
          content: "I've added it.\nAnd now?",
          toolCalls: [
            { tool: "add_task", arguments: { title: "Milk" }, result: { task_id: 1 }, timestamp: at(1) },
            { tool: "list_tasks", arguments: {}, result: null, timestamp: at(2) }
          ]
        }
      ]),
      conversation(1, "Old"),
      conversation(11, "Old")
    ]
  })
)

describe("tropism conversations", () => {
  it.live("lists them with their agents", () =>
    Effect.gen(function* () {
      const { out } = yield* invoke(yield* server, "conversations")
      expect(out).toHaveLength(4)
      expect(out[0]).toMatch(/^ID +TITLE +AGENT +LAST$/)
      expect(out[1]).toMatch(/^000000000002 +Groceries +TodoAssistant +/)
      const ofHelper = yield* invoke(yield* server, "conversations", "--agent", "helper")
      expect(ofHelper.out).toHaveLength(1)
      const none = yield* invoke(yield* server, "conversations", "--agent", "helper", "--json")
      expect(JSON.parse(none.out.join("\n"))).toEqual([])
    })
  )

  it.live("shows what was said, and what was done for it", () =>
    Effect.gen(function* () {
      const { out } = yield* invoke(yield* server, "conversations", "show", "Groceries")
      expect(out).toEqual([
        "Groceries",
        "",
        "> Add milk",
        "",
        '  add_task {"title":"Milk"} → {"task_id":1}',
        "  list_tasks {} → …",
        "I've added it.\nAnd now?",
        ""
      ])
      const json = yield* invoke(yield* server, "conversations", "show", "000000000002", "--json")
      expect(JSON.parse(json.out.join("\n"))).toMatchObject({
        title: "Groceries",
        messages: [{ role: "user" }, { role: "assistant" }]
      })
    })
  )

  it.live("renames and deletes", () =>
    Effect.gen(function* () {
      const here = yield* server
      const told = (...args: ReadonlyArray<string>) =>
        Effect.map(invoke(here, "conversations", ...args), ({ exitCode, out }) => [exitCode, ...out])
      expect(yield* told("rename", "Groceries", " Food ")).toEqual([0, expect.stringMatching(/\bFood\b/)])
      expect(yield* told("delete", "Food")).toEqual([0, expect.stringMatching(/\bFood\b/)])
      expect(here.state.conversations.map(({ title }) => title)).toEqual(["Old", "Old"])
    })
  )

  it.live("exports all of one, to a file or printed", () =>
    Effect.gen(function* () {
      const here = yield* server
      const printed = yield* invoke(here, "conversations", "export", "Groceries")
      const file = join(mkdtempSync(join(tmpdir(), "tropism-")), "groceries.json")
      const written = yield* invoke(here, "conversations", "export", "Groceries", "-o", file)
      expect(written.out).toEqual([expect.stringMatching(`\\b2\\b.* Groceries .*${file}`)])
      const document = JSON.parse(readFileSync(file, "utf8"))
      expect(document).toEqual(JSON.parse(printed.out.join("\n")))
      expect(document).toMatchObject({ title: "Groceries", messages: [{ content: "Add milk" }, {}] })
      const nowhere = yield* invoke(here, "conversations", "export", "Groceries", "-o", "/nonexistent/x")
      expect([nowhere.exitCode, nowhere.error]).toEqual([1, expect.stringContaining("/nonexistent")])
    })
  )

  it.live("says what is not there, or not the only one", () =>
    Effect.gen(function* () {
      const here = yield* server
      const error = (...args: ReadonlyArray<string>) =>
        Effect.map(invoke(here, "conversations", ...args), (told) => [told.exitCode, told.error])
      expect(yield* error("show", "Nothing")).toEqual([
        1,
        expect.stringMatching(/\bNothing\b.*"tropism conversations"/)
      ])
      expect(yield* error("delete", "Old")).toEqual([
        1,
        expect.stringMatching(/\b2\b.*\b000000000001, 000000000011\b/)
      ])
      expect((yield* error("show", "00000000-0000-7000-8009-000000000099"))[0]).toBe(1)
      expect(yield* error("rename", "Groceries", " ")).toEqual([2, expect.stringMatching(/\b1\b.*\b200\b/)])
      expect(here.requests.filter(({ line }) => !line.startsWith("GET"))).toEqual([])
    })
  )
})
