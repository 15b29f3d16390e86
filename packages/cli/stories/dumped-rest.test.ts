/**
 * What a dump brings besides the graph: conversations, files, backtests, todos, schedules and foreign servers.
 */
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { backtested, resultsOf } from "../../server/testing/backtest-words.ts"
import { newConversation, talk, talker } from "../../server/testing/conversation-words.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import {
  eventually,
  type Json,
  newProject,
  startServer,
  type Story,
  storyIn
} from "../../server/testing/platform.ts"
import { calling, feedOf, make, watcher } from "../../server/testing/story-words.ts"
import { folder, json } from "../testing/dump-words.ts"

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3])

/** A project in which people talked, attached, planned, tried and connected. */
const lived = Effect.fnUntraced(function* (story: Story) {
  const assistant = yield* talker(story, [{ say: "I hear you." }])
  const conversation = yield* newConversation(story, assistant, "About ada")
  yield* talk(story, conversation, "Hello.")
  yield* talk(story, conversation, "And goodbye.")
  const { body: file } = yield* story.send(
    "POST",
    `/api/projects/${story.projectId}/attachments?type=image/png&fileName=a.png`,
    png,
    { "content-type": "application/octet-stream" }
  )
  for (const title of ["Buy milk", "Call mum"]) yield* story.post("/tasks", { title })
  const [todo] = (yield* story.get("/tasks?type=todo")).items
  yield* story.post(`/tasks/${todo.id}/complete`)
  yield* make(story, "Person")
  yield* feedOf(story, 1)
  const tried = yield* story.post(
    "/agents",
    watcher({
      name: "tried",
      model: calling({ tool: "create_object", arguments: { type: "Note", properties: {} } })
    })
  )
  const backtest = yield* backtested(story, tried)
  const nightly = yield* story.post("/agents", {
    name: "nightly",
    prompt: "Sum up.",
    triggerType: "schedule",
    cronSchedule: "30 3 * * 1-5",
    timezone: "Europe/Berlin"
  })
  yield* story.post("/mcp-servers", {
    name: "elsewhere",
    transport: {
      type: "http",
      url: "https://mcp.example.com/mcp",
      headers: { authorization: { secret: "TROPISM_SECRET_ELSEWHERE" } }
    },
    allowedTools: ["search_*"]
  })
  return { backtest, conversation, file, nightly }
})

/** What people see of all that, without what belongs to one server: who is enabled, what is reached. */
const seenOf = Effect.fnUntraced(function* (story: Story, conversation: Json, backtest: Json) {
  const listed = (path: string) => Effect.map(story.get(path), ({ items }) => items)
  return {
    conversations: yield* listed("/conversations"),
    messages: yield* listed(`/conversations/${conversation.id}/messages`),
    todos: yield* listed("/tasks?type=todo"),
    backtest: yield* story.get(`/agents/${backtest.agentId}/backtests/${backtest.id}`),
    results: yield* resultsOf(story, backtest)
  }
})

describe("Requirement: what is restored is what was dumped, beside the graph, too", () => {
  it.live(
    "conversations, todos, backtests, schedules, files and foreign servers are the same elsewhere",
    () =>
      Effect.gen(function* () {
        const here = yield* freshDatabase
        const story = yield* newProject(yield* startServer(here), here)
        const { backtest, conversation, file: attached, nightly } = yield* lived(story)
        const file = join(yield* folder, "whole.dump")
        yield* json(story, "dump", "--project", story.projectId, "-o", file)

        const other = yield* freshDatabase
        const elsewhere = yield* startServer(other)
        const moved = yield* json(elsewhere, "restore", file)
        const there = storyIn(elsewhere, other, moved.project.id)
        const original = yield* seenOf(story, conversation, backtest)
        expect(original.messages.length).toBe(4)
        expect(original.results.length).toBe(1)
        expect(yield* seenOf(there, conversation, backtest)).toEqual(original)

        // Nobody takes agents that are asleep for agents that failed.
        const { findings } = yield* there.get("/health")
        expect(findings.filter(({ check }: Json) => check === "agent")).toMatchObject([
          { state: "warn", fix: expect.stringMatching(/^tropism agents enable /) }
        ])

        // A schedule is asleep until somebody enables its agent, and then fires when it would have fired here.
        expect(yield* there.get(`/agents/${nightly.id}`)).toMatchObject({ enabled: false, nextFireAt: null })
        const woken = yield* there.patch(`/agents/${nightly.id}`, { enabled: true })
        expect(woken.nextFireAt).toBe((yield* story.get(`/agents/${nightly.id}`)).nextFireAt)

        // A foreign server comes with the name of its secret, and with nothing that is one.
        const [foreign] = (yield* there.get("/mcp-servers")).items
        const [known] = (yield* story.get("/mcp-servers")).items
        expect(foreign).toMatchObject({ id: known.id, name: "elsewhere", transport: known.transport })
        expect(foreign.allowedTools).toEqual(known.allowedTools)

        // The file is there, byte for byte, without being sent again.
        const download = (from: Story) =>
          Effect.promise(() =>
            fetch(`${from.url}/api/projects/${from.projectId}/attachments/${attached.digest}`, {
              headers: { authorization: `Bearer ${from.token}` }
            }).then((response) => response.bytes())
          )
        expect(yield* download(there)).toEqual(png)
        expect(yield* download(story)).toEqual(png)

        // The conversation goes on where it was.
        yield* there.patch(`/agents/${conversation.agentId}`, { enabled: true })
        yield* talk(there, conversation, "Still there?")
        const messages = yield* eventually(
          there.get(`/conversations/${conversation.id}/messages`),
          ({ items }) => items.length === 6
        )
        expect(JSON.stringify(messages)).toContain("Still there?")
      }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("restored twice, it is there twice: the second under ids of its own, and the first as it was", () =>
    Effect.gen(function* () {
      const here = yield* freshDatabase
      const story = yield* newProject(yield* startServer(here), here)
      const { backtest, conversation } = yield* lived(story)
      const file = join(yield* folder, "twice.dump")
      yield* json(story, "dump", "--project", story.projectId, "-o", file)
      const other = yield* freshDatabase
      const elsewhere = yield* startServer(other)
      const first = yield* json(elsewhere, "restore", file)
      const second = yield* json(elsewhere, "restore", file, "--name", "Once more")
      expect([first.keptIds, second.keptIds]).toEqual([true, false])
      expect(second.rows).toBe(first.rows)
      const [one, two] = [first, second].map(({ project }) => storyIn(elsewhere, other, project.id))
      if (one === undefined || two === undefined) return expect.unreachable()
      expect(yield* seenOf(one, conversation, backtest)).toEqual(yield* seenOf(story, conversation, backtest))
      const titles = (at: Story) =>
        Effect.map(at.get("/tasks?type=todo"), ({ items }) =>
          items.map((task: Json) => [task.number, task.title])
        )
      expect(yield* titles(two)).toEqual(yield* titles(one))
      const [copy] = (yield* two.get("/conversations")).items
      expect(copy).toMatchObject({ title: "About ada" })
      expect(copy.id).not.toBe(conversation.id)
      expect((yield* two.get(`/conversations/${copy.id}/messages`)).items).toHaveLength(4)
      expect((yield* json(elsewhere, "verify", "--project", second.project.id)).differenceCount).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
