/**
 * Every POST that takes an Idempotency-Key, with what must be there before and how its effect is counted.
 */
import { Effect, type Scope } from "effect"
import { newAssistant } from "./chat-words.ts"
import { earned, earner, creating, decideEach } from "./autonomy-words.ts"
import { addEvent, echo, newContext } from "./context-words.ts"
import { addServer, newDiary, program } from "./mcp-words.ts"
import { newGuardedShop } from "./oauth-words.ts"
import { asked, asking } from "./question-words.ts"
import { eventually, type Json, type Story } from "./platform.ts"
import { change, entriesOf, feedOf, isOver, make, saying, silentFor, watcher } from "./story-words.ts"
import { suggested } from "./suggestion-words.ts"
import { acted } from "./undo-words.ts"

/** What is asked for, and the rows that tell how often it was done. */
export interface KeyedCase {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** A condition on a table whose rows become one more; `$1` is the project. */
  readonly rows: string
}

export interface KeyedDoor {
  /** The operation of the contract. */
  readonly id: string
  readonly arrange: (story: Story) => Effect.Effect<KeyedCase, never, Scope.Scope>
}

const manual = { name: "one", prompt: "Say.", triggerType: "manual", model: saying("Done.") }
const agentIn = (story: Story, more: Json = {}) => story.post("/agents", { ...manual, ...more })
const made = (table: string, where = "true") => `kb.${table} where project_id = $1 and ${where}`
const note = { tool: "create_object", arguments: { type: "Note", properties: { a: 1 } } }

const door = (
  id: string,
  arrange: (story: Story) => Generator<Effect.Effect<Json, never, Scope.Scope>, KeyedCase, Json>
): KeyedDoor => ({ id, arrange: (story) => Effect.gen(() => arrange(story)) })

export const graphDoors: ReadonlyArray<KeyedDoor> = [
  door("objects.create", function* () {
    return {
      path: "/objects",
      body: { type: "A", properties: { long: 1, a: 2 } },
      rows: made("graph_objects")
    }
  }),
  door("objects.restore", function* (story) {
    const object = yield* make(story, "A")
    yield* story.delete(`/objects/${object.id}`)
    return { path: `/objects/${object.id}/restore`, rows: made("graph_object_versions") }
  }),
  door("relationships.create", function* (story) {
    const [from, to] = [yield* make(story, "A"), yield* make(story, "A")]
    return {
      path: "/relationships",
      body: { type: "knows", fromId: from.id, toId: to.id },
      rows: made("graph_relationships")
    }
  }),
  door("relationships.restore", function* (story) {
    const [from, to] = [yield* make(story, "A"), yield* make(story, "A")]
    const one = yield* story.post("/relationships", { type: "knows", fromId: from.id, toId: to.id })
    yield* story.delete(`/relationships/${one.id}`)
    return {
      path: `/relationships/${one.id}/restore`,
      rows: made("graph_events", "entity_type = 'relationship'")
    }
  }),
  door("attachments.attach", function* () {
    return {
      path: "/attachments",
      body: "Words",
      headers: { "content-type": "text/plain" },
      rows: made("attachments")
    }
  })
]

export const agentDoors: ReadonlyArray<KeyedDoor> = [
  door("agents.create", function* () {
    return { path: "/agents", body: manual, rows: made("agents") }
  }),
  door("agents.trigger", function* (story) {
    const agent = yield* agentIn(story, { model: silentFor(300) })
    return { path: `/agents/${agent.id}/trigger`, body: { input: 1 }, rows: made("agent_runs") }
  }),
  door("definitions.apply", function* () {
    return { path: "/agents/apply", body: { agents: [manual] }, rows: made("agents") }
  }),
  door("definitions.restore", function* (story) {
    const agent = yield* agentIn(story)
    yield* story.patch(`/agents/${agent.id}`, { prompt: "Say more." })
    return { path: `/agents/${agent.id}/versions/1/restore`, rows: made("agent_versions") }
  }),
  door("autonomy.reverse", function* (story) {
    const agent = yield* story.post("/agents", earner({ note: creating("Note") }, {}))
    yield* decideEach(story, agent, "note", ["accept", "accept"])
    const [promotion] = (yield* earned(story, agent)).promotions
    return {
      path: `/agents/${agent.id}/promotions/${promotion.id}/reverse`,
      body: { reason: "No" },
      rows: made("promotions", "ended_at is not null")
    }
  }),
  door("backtests.begin", function* (story) {
    yield* make(story, "Start")
    const agent = yield* story.post("/agents", watcher({ enabled: true }))
    return { path: `/agents/${agent.id}/backtests`, body: { days: 1 }, rows: made("backtests") }
  }),
  door("backtests.cancel", function* (story) {
    const agent = yield* story.post("/agents", watcher({ model: silentFor(60_000) }))
    yield* make(story, "Person")
    const one = yield* story.post(`/agents/${agent.id}/backtests`, { days: 1 })
    return {
      path: `/agents/${agent.id}/backtests/${one.id}/cancel`,
      rows: made("backtests", "status = 'cancelled'")
    }
  }),
  door("processing.batchTrigger", function* (story) {
    const object = yield* make(story, "Person")
    // An agent made before the event is dispatched would react to it, and leave nothing to trigger.
    yield* feedOf(story, 1)
    const agent = yield* story.post("/agents", watcher())
    return {
      path: `/agents/${agent.id}/batch-trigger`,
      body: { objectIds: [object.id] },
      rows: made("agent_processing_log")
    }
  }),
  door("processing.redrive", function* (story) {
    const agent = yield* failed(story)
    return { path: `/agents/${agent.id}/dead-letters/redrive`, body: {}, rows: made("agent_processing_log") }
  }),
  door("processing.retry", function* (story) {
    const agent = yield* failed(story)
    const [entry] = yield* entriesOf(story, agent)
    return {
      path: `/agents/${agent.id}/processing-log/${entry.id}/retry`,
      rows: made("agent_processing_log")
    }
  }),
  door("webhooks.create", function* (story) {
    const agent = yield* agentIn(story, { triggerType: "webhook" })
    return { path: `/agents/${agent.id}/webhooks`, body: { name: "bell" }, rows: made("webhooks") }
  }),
  door("webhooks.rotate", function* (story) {
    const agent = yield* agentIn(story, { triggerType: "webhook" })
    const hook = yield* story.post(`/agents/${agent.id}/webhooks`, {})
    return {
      path: `/agents/${agent.id}/webhooks/${hook.id}/rotate`,
      body: { graceSeconds: 60 },
      rows: made("webhooks", "previous_token_hash is not null")
    }
  }),
  door("mcpServers.create", function* () {
    const diary = yield* newDiary as Effect.Effect<Json, never, Scope.Scope>
    return {
      path: "/mcp-servers",
      body: { name: "shop", transport: program(diary), allowedTools: ["*"] },
      rows: made("mcp_servers")
    }
  }),
  door("mcpServers.refresh", function* (story) {
    const diary = yield* newDiary as Effect.Effect<Json, never, Scope.Scope>
    const server = yield* addServer(story, program(diary))
    return { path: `/mcp-servers/${server.id}/refresh`, rows: made("mcp_servers", "version = 2") }
  }),
  door("mcpServers.signIn", function* (story) {
    const { server } = yield* newGuardedShop(story, { isSignedIn: false })
    return { path: `/mcp-servers/${server.id}/sign-in`, body: {}, rows: made("mcp_sign_ins") }
  })
]

/** An agent with an event that it failed to handle. */
const failed = (story: Story): Effect.Effect<Json> =>
  Effect.gen(function* () {
    const agent = yield* story.post("/agents", watcher({ model: { provider: "anthropic", name: "none" } }))
    yield* make(story, "Person")
    yield* eventually(entriesOf(story, agent), (found) => found.some(isOver))
    return agent
  })

/** A run that rests, because it has done as many steps as it may. */
const rested = (story: Story): Effect.Effect<Json> =>
  Effect.gen(function* () {
    const model = {
      ...saying(""),
      script: {
        rules: [
          { when: "tools.size == 0", say: "So far." },
          { say: "", calls: [note] }
        ]
      }
    }
    const agent = yield* agentIn(story, { model, maxSteps: 1, tools: ["graph.*"], executionMode: "execute" })
    return yield* story.post(`/agents/${agent.id}/trigger`, {})
  })

export const runDoors: ReadonlyArray<KeyedDoor> = [
  door("runs.cancel", function* (story) {
    const run = yield* rested(story)
    return { path: `/runs/${run.id}/cancel`, rows: made("agent_runs", "status = 'cancelled'") }
  }),
  door("runs.resume", function* (story) {
    const run = yield* rested(story)
    return {
      path: `/runs/${run.id}/resume`,
      body: { message: "Go on." },
      rows: made("context_events", "payload::text like '%Go on.%'")
    }
  }),
  door("runs.answer", function* (story) {
    const { run } = yield* asked(story, asking("What?")) as Effect.Effect<Json>
    return {
      path: `/runs/${run.id}/answer`,
      body: { answer: "That." },
      rows: made("tasks", "type = 'question' and status = 'completed'")
    }
  }),
  door("chat.send", function* (story) {
    const agent = yield* newAssistant(story, echo)
    return { path: "/chat", body: { agentId: agent.id, message: "Hello" }, rows: made("conversations") }
  }),
  door("conversations.begin", function* (story) {
    const agent = yield* newAssistant(story, echo)
    return { path: "/conversations", body: { agentId: agent.id }, rows: made("conversations") }
  }),
  door("contexts.create", function* (story) {
    const agent = yield* agentIn(story)
    return { path: "/contexts", body: { name: "talk", agentId: agent.id }, rows: made("contexts") }
  }),
  door("contexts.fork", function* (story) {
    yield* newContext(story, "talk")
    yield* addEvent(story, "talk", "Hello", false)
    return { path: "/contexts/talk/fork", body: { name: "other" }, rows: made("contexts") }
  }),
  door("contexts.addEvent", function* (story) {
    yield* newContext(story, "talk")
    return {
      path: "/contexts/talk/events",
      body: { type: "UserMessageEvent", content: "Once", triggersAgentTurn: false },
      rows: made("context_events", "type = 'UserMessageEvent'")
    }
  }),
  door("contexts.interrupt", function* (story) {
    yield* newContext(story, "talk", silentFor(60_000))
    yield* addEvent(story, "talk", "Hello?")
    yield* eventually(story.get("/contexts/talk/state"), (state) => state.agentTurnStartedAtEventId !== null)
    return {
      path: "/contexts/talk/interrupt",
      rows: made("context_events", "type = 'InterruptRequestedEvent'")
    }
  }),
  door("comparisons.compare", function* (story) {
    yield* newContext(story, "talk", echo, { tools: [] })
    return {
      path: "/contexts/talk/comparisons",
      body: {
        content: "Which?",
        variants: [
          { label: "a", systemPrompt: "A." },
          { label: "b", systemPrompt: "B." }
        ]
      },
      rows: made("contexts", "name like 'talk.%.a'")
    }
  })
]

export const taskDoors: ReadonlyArray<KeyedDoor> = [
  door("tasks.add", function* () {
    return { path: "/tasks", body: { title: "Milk" }, rows: made("tasks") }
  }),
  door("tasks.complete", function* (story) {
    const todo = yield* story.post("/tasks", { title: "Milk" })
    return { path: `/tasks/${todo.id}/complete`, rows: made("tasks", "status = 'completed'") }
  }),
  door("tasks.approve", function* (story) {
    const { task } = yield* suggested(story, note)
    return { path: `/tasks/${task.id}/approve`, body: {}, rows: made("graph_objects", "type = 'Note'") }
  }),
  door("tasks.reject", function* (story) {
    const { task } = yield* suggested(story, note)
    return { path: `/tasks/${task.id}/reject`, body: {}, rows: made("tasks", "status = 'rejected'") }
  }),
  door("tasks.rejectAll", function* (story) {
    const { agent } = yield* suggested(story, note)
    const path = `/agents/${agent.id}/suggestions/reject`
    return { path, body: {}, rows: made("tasks", "status = 'rejected'") }
  }),
  door("tasks.decide", function* (story) {
    const { task } = yield* suggested(story, note)
    const missing = { taskId: "00000000-0000-7000-8000-000000000000", digest: task.digest }
    return {
      path: "/tasks/decisions",
      body: { decision: "approve", tasks: [missing, { taskId: task.id, digest: task.digest }] },
      rows: made("graph_objects", "type = 'Note'")
    }
  }),
  door("tasks.rerun", function* (story) {
    const object = yield* make(story, "Person", { name: "Ada" })
    const update = {
      tool: "update_object",
      arguments: { objectId: object.id, properties: { name: "Ida" } }
    }
    const { task } = yield* suggested(story, update)
    yield* change(story, object, { name: "Eve" })
    return { path: `/tasks/${task.id}/rerun`, rows: made("agent_runs") }
  }),
  ...(["undoRun", "undoAgent", "undoChain"] as const).map((what) =>
    door(`undos.${what}`, function* (story) {
      const { agent, run } = yield* acted(story, [note])
      const [root] = (yield* story.get("/events?limit=1")).items
      const path = {
        undoRun: `/runs/${run.id}/undo`,
        undoAgent: `/agents/${agent.id}/undo`,
        undoChain: `/chains/${root.id}/undo`
      }[what]
      return { path, ...(what === "undoAgent" ? { body: { version: 1 } } : {}), rows: made("tasks") }
    })
  )
]

export const peopleDoors: ReadonlyArray<KeyedDoor> = [
  door("members.add", function* () {
    return {
      path: "/members",
      body: { userId: "ada", role: "editor" },
      rows: made("members", "user_id = 'ada'")
    }
  }),
  door("members.invite", function* (story) {
    yield* story.post("/members", { userId: "ada", role: "editor" })
    return {
      path: "/members/ada/login-link",
      rows: "kb.login_codes where $1 = any(project_ids)"
    }
  }),
  door("tokens.create", function* (story) {
    yield* story.post("/members", { userId: "ada", role: "editor" })
    return {
      path: "/tokens",
      body: { name: "mine", userId: "ada" },
      rows: "kb.api_tokens where $1 = any(project_ids)"
    }
  }),
  door("serverTokens.loginLink", function* () {
    return {
      path: "/api/login-link",
      rows: "kb.login_codes where project_ids is null and $1::uuid is not null"
    }
  }),
  door("serverTokens.create", function* (story) {
    const name = `t${story.projectId}`
    return {
      path: "/api/tokens",
      body: { name, userId: "ops", role: "viewer" },
      rows: `kb.api_tokens where name = 't' || $1::uuid`
    }
  }),
  door("projects.create", function* (story) {
    return {
      path: "/api/projects",
      body: { name: `p${story.projectId}` },
      rows: `kb.projects where name = 'p' || $1::uuid`
    }
  })
]

export const keyedDoors: ReadonlyArray<KeyedDoor> = [
  ...graphDoors,
  ...agentDoors,
  ...runDoors,
  ...taskDoors,
  ...peopleDoors
]
