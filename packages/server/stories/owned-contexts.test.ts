/**
 * A context that belongs to one person: theirs at every door, an admin's to read, and nobody else's.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { messagesOf, newConversation, talk, talker } from "../testing/conversation-words.ts"
import { addEvent, contentsOf, logOf, quietLog } from "../testing/context-words.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { problemOf } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const echo = [{ say: "You said: {{ message }}" }]

/** Ann's conversation with an agent in a project in which Ben and an admin are too. */
const annsTalk = Effect.gen(function* () {
  const story = yield* newStoryHere
  const ann = yield* asUser(story, "editor", null, "ann")
  const ben = yield* asUser(story, "editor", null, "ben")
  const agent = yield* talker(story, echo, { tools: [] })
  const talks = yield* newConversation(story, agent, "Secrets", "ann")
  yield* talk(ann, talks, "My secret is 42")
  const [run] = yield* endedRuns(story, agent, 1)
  return { story, ann, ben, agent, talks, run }
})

type Door = readonly [method: string, path: string, body?: unknown]

/** Asks a door as a stream where it is one, and lets go of it at once. */
const statusOf = (story: Story, [method, path]: Door) =>
  Effect.promise((signal) =>
    fetch(`${story.url}/api/projects/${story.projectId}${path}`, {
      method,
      signal,
      headers: { authorization: `Bearer ${story.token}`, accept: "text/event-stream" }
    }).then((response) => (response.body?.cancel() ?? Promise.resolve()).then(() => response.status))
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A conversation belongs to one person", () => {
    it.effect(
      "S003-R46 what stands in it is read by its owner and by admins, and is not there for others",
      () =>
        Effect.gen(function* () {
          const { story, ann, ben, talks, run } = yield* annsTalk
          const compared = yield* ann.post(`/contexts/${talks.contextName}/comparisons`, {
            content: "Which?",
            variants: [
              { label: "a", content: "A?" },
              { label: "b", content: "B?" }
            ]
          })
          const viewer = yield* asUser(story, "viewer", null, "vera")
          const reviewer = yield* asUser(story, "reviewer", null, "rob")
          const elsewhere = yield* asUser(story, "admin", [crypto.randomUUID()])
          const context = (name: string): ReadonlyArray<Door> => [
            ["GET", `/contexts/${name}`],
            ["GET", `/contexts/${name}/state`],
            ["GET", `/contexts/${name}/events`],
            ["GET", `/contexts/${name}/replay`],
            ["GET", `/contexts/${name}/comparisons/${compared.id}`]
          ]
          const ofRun = (id: string): ReadonlyArray<Door> => [
            ["GET", `/runs/${id}/events`],
            ["GET", `/runs/${id}/tool-calls`],
            ["GET", `/runs/${id}/steps`],
            ["GET", `/runs/${id}/objects`],
            ["GET", `/runs/${id}/model-calls`],
            ["GET", `/runs/${id}/model-calls/1`],
            ["GET", `/runs/${id}/open-request`],
            ["GET", `/runs/${id}/replay`]
          ]
          const missing = [...context("nobody"), ...ofRun(crypto.randomUUID())]
          for (const [index, door] of [...context(talks.contextName), ...ofRun(run.id)].entries()) {
            const [method, path] = door
            const nothing = yield* problemOf(story.ask(...(missing[index] as Door)), 404)
            for (const reader of [ann, story])
              expect([path, (yield* reader.ask(method, path)).status]).toEqual([path, 200])
            for (const other of [ben, viewer, reviewer])
              expect([path, yield* problemOf(other.ask(method, path), 404)]).toEqual([path, nothing])
            yield* problemOf(elsewhere.ask(method, path), 404)
          }
          for (const door of [
            ["GET", `/contexts/${talks.contextName}/events`],
            ["GET", `/runs/${run.id}/events`]
          ] as const) {
            for (const reader of [ann, story]) expect(yield* statusOf(reader, door)).toBe(200)
            for (const other of [ben, viewer, elsewhere]) expect(yield* statusOf(other, door)).toBe(404)
          }
        })
    )

    it.effect("S003-R46 only its owner speaks in it: nobody else can have its agent work for them", () =>
      Effect.gen(function* () {
        const { story, ann, ben, talks, run } = yield* annsTalk
        const before = yield* logOf(ann, talks.contextName)
        const doors = (name: string, id: string): ReadonlyArray<Door> => [
          ["POST", `/contexts/${name}/events`, { type: "UserMessageEvent", content: "Hello" }],
          ["POST", `/contexts/${name}/events`, { type: "SetTimeoutEvent", timeoutMs: 5_000 }],
          [
            "POST",
            `/contexts/${name}/events`,
            { type: "SetLlmConfigEvent", role: "primary", provider: "replay", name: "nothing" }
          ],
          ["POST", `/contexts/${name}/events`, { type: "FileAttachmentEvent", url: "http://127.0.0.1:1/x" }],
          ["POST", `/contexts/${name}/fork`, { name: "another" }],
          [
            "POST",
            `/contexts/${name}/comparisons`,
            {
              content: "Which?",
              variants: [
                { label: "a", content: "A?" },
                { label: "b", content: "B?" }
              ]
            }
          ],
          ["POST", `/runs/${id}/resume`, { message: "Go on" }],
          ["POST", `/runs/${id}/answer`, { answer: "Yes" }]
        ]
        const missing = doors("nobody", crypto.randomUUID())
        for (const [index, [method, path, body]] of doors(talks.contextName, run.id).entries()) {
          const nothing = yield* problemOf(ben.ask(...(missing[index] as Door)), 404)
          expect([path, yield* problemOf(ben.ask(method, path, body), 404)]).toEqual([path, nothing])
          yield* problemOf(story.ask(method, path, body), 403)
        }
        for (const [method, path] of [
          ["POST", `/contexts/${talks.contextName}/interrupt`],
          ["POST", `/runs/${run.id}/cancel`]
        ] as const) {
          yield* problemOf(ben.ask(method, path), 404)
          yield* problemOf(story.ask(method, path), 409)
        }
        expect(yield* logOf(ann, talks.contextName)).toEqual(before)
      })
    )

    it.effect("lists show that its run was there, and no word of it", () =>
      Effect.gen(function* () {
        const { story, ann, ben, talks, run } = yield* annsTalk
        const seen = { id: run.id, status: "completed", owner: "ann", contextName: talks.contextName }
        const told = { ...seen, summary: "You said: My secret is 42" }
        for (const reader of [ann, story]) {
          expect(yield* reader.get(`/runs/${run.id}`)).toMatchObject(told)
          for (const query of ["", "?query=secret"])
            expect((yield* reader.get(`/runs${query}`)).items).toMatchObject([told])
          expect((yield* reader.get("/contexts")).items).toMatchObject([
            { name: talks.contextName, owner: "ann" }
          ])
          expect((yield* reader.get(`/chains/${run.id}`)).items).toMatchObject([{ run: told }])
        }
        const answers = [
          yield* ben.get(`/runs/${run.id}`),
          yield* ben.get("/runs"),
          yield* ben.get(`/chains/${run.id}`),
          yield* ben.get("/contexts"),
          yield* ben.get("/tasks")
        ]
        expect(answers[0]).toMatchObject({ ...seen, summary: null })
        expect(answers[1].items).toMatchObject([{ ...seen, summary: null }])
        expect(answers[3].items).toEqual([])
        expect(JSON.stringify(answers)).not.toContain("secret")
        // Nor can it be guessed word by word.
        expect((yield* ben.get("/runs?query=secret")).items).toEqual([])
      })
    )

    it.effect("a fork of it is its owner's too", () =>
      Effect.gen(function* () {
        const { ann, ben, talks } = yield* annsTalk
        yield* ann.post(`/contexts/${talks.contextName}/fork`, { name: "anns-other" })
        expect(yield* ann.get("/contexts/anns-other")).toMatchObject({ owner: "ann" })
        yield* problemOf(ben.ask("GET", "/contexts/anns-other"), 404)
        yield* addEvent(ann, "anns-other", "More")
        const log = yield* quietLog(ann, "anns-other")
        expect(contentsOf(log, "AssistantMessageEvent").at(-1)).toBe("You said: More")
      })
    )

    it.effect("what its agent hands on to another agent is read by nobody else either", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ann = yield* asUser(story, "editor", null, "ann")
        const ben = yield* asUser(story, "editor", null, "ben")
        const helper = yield* talker(story, [{ say: "Done with: {{ message }}" }], {
          name: "helper",
          prompt: "{{ input.task }}",
          tools: []
        })
        const agent = yield* talker(
          story,
          [
            {
              when: "step == 0",
              calls: [{ tool: "spawn_agent", arguments: { agent: "helper", task: "Keep the secret" } }]
            },
            { say: "Handed on." }
          ],
          { tools: ["run.*"], subAgents: ["helper"] }
        )
        const talks = yield* newConversation(story, agent, "Handing on", "ann")
        yield* talk(ann, talks, "Tell the helper")
        const [child] = yield* endedRuns(story, helper, 1)
        expect(child).toMatchObject({ owner: "ann", trigger: { input: { task: "Keep the secret" } } })
        const seen = yield* ben.get(`/runs/${child.id}`)
        expect(seen).toMatchObject({ owner: "ann", summary: null })
        expect(JSON.stringify([seen, yield* ben.get("/runs"), yield* ben.get("/contexts")])).not.toContain(
          "secret"
        )
        yield* problemOf(ben.ask("GET", `/runs/${child.id}/events`), 404)
      })
    )

    it.effect("a question that its agent asks is its owner's to answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ann = yield* asUser(story, "reviewer", null, "ann")
        const ben = yield* asUser(story, "reviewer", null, "ben")
        const agent = yield* talker(
          story,
          [
            {
              when: "step == 0",
              calls: [{ tool: "ask_user", arguments: { question: "Which secret?" } }]
            },
            { say: "Thanks." }
          ],
          { tools: ["run.ask_user"] }
        )
        const talks = yield* newConversation(story, agent, "Asking", "ann")
        yield* addEvent(ann, talks.contextName, "Ask me")
        const { items } = yield* eventually(
          ann.get("/tasks?type=question"),
          (page) => page.items.length === 1
        )
        const [question] = items
        expect(question).toMatchObject({ title: "Which secret?" })
        for (const path of ["/tasks", "/tasks?type=question", "/tasks?status=pending"])
          expect((yield* ben.get(path)).items).toEqual([])
        yield* problemOf(ben.ask("GET", `/tasks/${question.id}`), 404)
        expect(JSON.stringify(yield* ben.get(`/chains/${question.payload.agentRunId}`))).not.toContain(
          "secret"
        )
        const runId = question.payload.agentRunId
        yield* problemOf(ben.ask("POST", `/runs/${runId}/answer`, { answer: "Mine" }), 404)
        yield* ann.post(`/runs/${runId}/answer`, { answer: "The first" })
        const { items: messages } = yield* eventually(
          messagesOf(ann, talks),
          (page) => page.items.at(-1).content === "Thanks."
        )
        expect(messages[1]).toMatchObject({
          content: "Thanks.",
          toolCalls: [{ result: { answer: "The first" } }]
        })
      })
    )

    it.effect("a file in it is read by those who sent it or may read it there", () =>
      Effect.gen(function* () {
        const { story, ann, ben, talks } = yield* annsTalk
        const send = (who: Story, text: string) =>
          Effect.map(
            who.send("POST", `/api/projects/${story.projectId}/attachments`, text, {
              "content-type": "text/plain"
            }),
            ({ body }) => body.digest
          )
        const digest = yield* send(ann, "A secret in a file")
        yield* ann.post(`/contexts/${talks.contextName}/events`, {
          type: "FileAttachmentEvent",
          attachment: digest
        })
        for (const reader of [ann, story])
          expect((yield* reader.ask("GET", `/attachments/${digest}`)).status).toBe(200)
        const nothing = yield* problemOf(ben.ask("GET", `/attachments/${"1".repeat(64)}`), 404)
        expect(yield* problemOf(ben.ask("GET", `/attachments/${digest}`), 404)).toEqual(nothing)
        const agent = yield* talker(story, echo)
        yield* story.post("/contexts", { name: "open", agentId: agent.id })
        const attach = { type: "FileAttachmentEvent", attachment: digest }
        yield* problemOf(ben.ask("POST", "/contexts/open/events", attach), 422, "/attachment")
        // Who has the file needs nobody's leave.
        expect(yield* send(ben, "A secret in a file")).toBe(digest)
        yield* ben.post("/contexts/open/events", attach)
        const viewer = yield* asUser(story, "viewer", null, "vera")
        expect((yield* viewer.ask("GET", `/attachments/${digest}`)).status).toBe(200)
      })
    )

    it.effect("what was said in it is recalled in no context of anybody else", () =>
      Effect.gen(function* () {
        const { story, ann, ben, agent } = yield* annsTalk
        const recalledIn = Effect.fnUntraced(function* (who: Story, name: string) {
          yield* who.post(`/contexts/${name}/events`, {
            type: "SetMemoryConfigEvent",
            recallPassages: 5,
            keepsSummary: false
          })
          yield* addEvent(who, name, "What is my secret?")
          return contentsOf(yield* quietLog(who, name), "MemoryRecalledEvent")
        })
        const bens = yield* newConversation(story, agent, "Ben's", "ben")
        const anns = yield* newConversation(story, agent, "Ann's other", "ann")
        yield* story.post("/contexts", { name: "open", agentId: agent.id })
        expect(yield* recalledIn(ben, bens.contextName)).toEqual([])
        expect(yield* recalledIn(ben, "open")).toEqual([])
        expect((yield* recalledIn(ann, anns.contextName)).join()).toContain("My secret is 42")
      })
    )

    it.effect("its run is replayed for nobody else", () =>
      Effect.gen(function* () {
        const { story, ann, ben, talks, run } = yield* annsTalk
        const recorded = { type: "SetLlmConfigEvent", role: "primary", provider: "replay", name: run.id }
        const other = yield* talker(story, echo, { tools: [] })
        yield* story.post("/contexts", { name: "open", agentId: other.id })
        yield* problemOf(ben.ask("POST", "/contexts/open/events", recorded), 422, "/name")
        const replaying = yield* story.post("/agents", {
          name: "replaying",
          prompt: "Answer.",
          triggerType: "manual",
          model: { provider: "replay", name: run.id }
        })
        const triggered: Json = yield* ben.post(`/agents/${replaying.id}/trigger`)
        expect(triggered.status).toBe("failed")
        expect(JSON.stringify(triggered)).not.toContain("secret")
        yield* ann.post(`/contexts/${talks.contextName}/events`, recorded)
      })
    )

    it.effect("nobody goes on with a deleted one", () =>
      Effect.gen(function* () {
        const { ann, story, talks } = yield* annsTalk
        expect((yield* ann.delete(`/conversations/${talks.id}`)).status).toBe(204)
        const message = { type: "UserMessageEvent", content: "Hello?" }
        yield* problemOf(ann.ask("POST", `/contexts/${talks.contextName}/events`, message), 404)
        yield* problemOf(ann.ask("POST", `/contexts/${talks.contextName}/fork`, { name: "again" }), 404)
        expect(contentsOf(yield* logOf(story, talks.contextName), "UserMessageEvent")).toEqual([
          "My secret is 42"
        ])
      })
    )

    it.effect("what is said in it puts it first in the list", () =>
      Effect.gen(function* () {
        const { ann, agent, story, talks } = yield* annsTalk
        yield* newConversation(story, agent, "Newer", "ann")
        const titles = Effect.map(ann.get("/conversations"), ({ items }) =>
          items.map(({ title }: Json) => title)
        )
        expect(yield* titles).toEqual(["Newer", "Secrets"])
        yield* talk(ann, talks, "And more")
        expect(yield* titles).toEqual(["Secrets", "Newer"])
      })
    )
  })

  describe("Requirement: the role in the project holds everywhere in it", () => {
    it.effect("an admin's token of a viewer reads no conversation of others, by no address", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const said = yield* story.post("/chat", { message: "add buy a present for Eve" })
        const eve = yield* asUser(story, "admin", [story.projectId], "eve")
        yield* story.post("/members", { userId: "boss", role: "admin" })
        yield* story.patch("/members/eve", { role: "viewer" })
        expect((yield* eve.send("GET", "/api/me")).body).toMatchObject({
          role: "admin",
          roles: { [story.projectId]: "viewer" }
        })
        const run = yield* eve.get(`/runs/${said.runId}`)
        expect(run).toMatchObject({ id: said.runId, owner: "admin", summary: null })
        expect(JSON.stringify(run)).not.toContain("resent")
        const chain = yield* eve.get(`/chains/${run.rootEventId ?? said.runId}`)
        expect(JSON.stringify(chain)).not.toContain("resent")
        for (const path of ["/events", "/steps", "/objects", "/model-calls"])
          yield* problemOf(eve.ask("GET", `/runs/${said.runId}${path}`), 404)
        yield* problemOf(eve.ask("GET", `/conversations/${said.conversationId}`), 404)
        expect(JSON.stringify(yield* eve.get("/tool-calls"))).not.toContain("resent")
      })
    )
  })
})
