/**
 * AC-002: whichever server answers, and whichever dies, a conversation goes on from its log.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { answered, chat, contextOf, keyed, newAssistant } from "../testing/chat-words.ts"
import { contentsOf, countOf, quietLog } from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import { newProject, scripted, type Story, storyIn } from "../testing/platform.ts"

/** Adds a task, and says how many were spoken of. */
const adding = scripted([
  { when: "step == 0", calls: [{ tool: "add_task", arguments: { title: "{{ message }}" } }], latencyMs: 300 },
  { say: "Task #{{ turn }} is added.", latencyMs: 1_000 }
])

/** Two server processes on one database, and one project through the doors of each. */
const twoServers = Effect.gen(function* () {
  // A database that is not a program's own may have other programs on it.
  const access = { ...(yield* freshDatabase), embedded: false }
  const servers = yield* Effect.all([startMortal(access), startMortal(access)], { concurrency: 2 })
  const here = yield* newProject(servers[0], access)
  return { access, servers, stories: [here, storyIn(servers[1], access, here.projectId)] as const }
})

/** Lets the time pass in which nobody is heard of whoever holds a run. */
const lapse = ({ access, projectId }: Story) =>
  ask(
    access,
    `update kb.agent_runs set lease_expires_at = now() where project_id = $1 and status = 'running'`,
    [projectId]
  )

describe("S003-A02 AC-002 the agent is stateless", () => {
  it.live("S003-R02 S003-R05 two servers answer alternate messages of one conversation", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { stories } = yield* twoServers
        const [here, there] = stories
        const agent = yield* newAssistant(here, adding)
        const { conversationId } = yield* answered(here, { agentId: agent.id, message: "Task 1" })
        for (let n = 2; n <= 6; n += 1) {
          const story = n % 2 === 0 ? there : here
          const answer = yield* answered(story, { conversationId, message: `Task ${n}` })
          expect(answer).toMatchObject({
            response: `Task #${n} is added.`,
            toolCalls: [{ result: { task_id: n } }]
          })
        }
        const log = yield* quietLog(there, contextOf(conversationId))
        expect(countOf(log, "AgentTurnCompletedEvent")).toBe(6)
      })
    )
  )

  it.live(
    "S003-A02 S003-R35 the server that works is killed in the middle of a turn: the other goes on, and each message has one answer",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { servers, stories } = yield* twoServers
          const agent = yield* newAssistant(stories[0], adding)
          const { conversationId } = yield* answered(stories[0], { agentId: agent.id, message: "Task 1" })
          const body = { conversationId, message: "Task 2" }
          // Whichever works dies when the tool was called, and the answer is still to come.
          for (const server of servers) yield* server.dieAt("tool.afterCommit", 1)
          const begun = yield* chat(stories[0], body, keyed("second"), "?wait=false")
          expect(begun.status).toBe(202)
          const victim = yield* Effect.raceFirst(
            Effect.as(servers[0].died, 0 as const),
            Effect.as(servers[1].died, 1 as const)
          )
          const survivor = stories[1 - victim] ?? stories[0]
          yield* lapse(survivor)
          const answer = yield* answered(survivor, body, keyed("second"))
          expect(answer).toMatchObject({
            conversationId,
            status: "completed",
            response: "Task #2 is added.",
            toolCalls: [{ tool: "add_task", result: { task_id: 2 } }]
          })
          const log = yield* quietLog(survivor, contextOf(conversationId))
          expect(contentsOf(log, "UserMessageEvent")).toEqual(["Task 1", "Task 2"])
          expect(countOf(log, "AgentTurnCompletedEvent")).toBe(2)
          expect((yield* survivor.get("/tasks")).items).toHaveLength(2)
          expect((yield* survivor.get("/verify")).differences).toEqual([])
        })
      )
  )

  it.live(
    "a server dies between keeping a message and answering: said again, it is answered and not said twice",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const first = yield* startMortal(access)
          const story = yield* newProject(first, access)
          const agent = yield* newAssistant(story, adding)
          const body = { agentId: agent.id, message: "Task 1" }
          for (const [point, kept] of [
            ["chat.beforeCommit", 0],
            ["chat.afterCommit", 1]
          ] as const) {
            const mortal = point === "chat.beforeCommit" ? first : yield* startMortal(access)
            yield* mortal.dieAt(point, 1)
            yield* Effect.exit(chat(storyIn(mortal, access, story.projectId), body, keyed("only")))
            yield* mortal.died
            const rows = yield* ask(access, `select 1 from kb.conversations where project_id = $1`, [
              story.projectId
            ])
            expect(rows).toHaveLength(kept)
          }
          const later = storyIn(yield* startMortal(access), access, story.projectId)
          const answer = yield* answered(later, body, keyed("only"))
          expect(answer.response).toBe("Task #1 is added.")
          const log = yield* quietLog(later, contextOf(answer.conversationId))
          expect(contentsOf(log, "UserMessageEvent")).toEqual(["Task 1"])
          expect((yield* later.get("/tasks")).items).toHaveLength(1)
        })
      )
  )
})
