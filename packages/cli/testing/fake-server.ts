/**
 * A small HTTP server that answers as the contract says, from lists in memory.
 *
 * It is for tests of the command line where the true server is not needed: it
 * keeps what was asked of it and can be told to misbehave. It runs no agent.
 */
import type { Project } from "@tropism/api/system-api"
import { type Agent, AgentInput, defineAgent } from "@tropism/domain/agent"
import { findWarnings } from "@tropism/domain/agent-warning"
import { type AppliedAgent, type ApplyInput, definitionOf } from "@tropism/domain/agent-version"
import type { GraphEvent } from "@tropism/domain/graph"
import type { Stop } from "@tropism/domain/kill-switch"
import { diffJson } from "@tropism/domain/json-diff"
import type { RunStep } from "@tropism/domain/model-call"
import type { Run } from "@tropism/domain/run"
import { isQuestion, isSuggestion, isTodo, type Task } from "@tropism/domain/task"
import { UserId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { answerOfConversations, type FakeConversation } from "./fake-conversations.ts"
import { at, changedTodo, id, isWanted, todo } from "./records.ts"

export interface FakeState {
  projects: Array<Project>
  agents: Array<Agent>
  runs: Array<Run>
  /** The steps of every run. */
  steps: Array<RunStep>
  tasks: Array<Task>
  events: Array<GraphEvent>
  conversations: Array<FakeConversation>
  /** What the import answers, line by line; a text that is no line breaks the stream off. */
  importLines: Array<unknown>
  /** What the first imports answer instead, each once. */
  importAnswers: Array<Array<unknown>>
  /** What the kill switches stop, by the address of each. */
  stopped: Map<string, Stop>
  /** What the export answers. */
  exportText: string
  /** Statuses that these paths answer instead of doing anything. */
  failing: Map<string, { readonly status: number; readonly body: unknown; readonly headers?: object }>
}

export interface FakeServer {
  readonly url: string
  readonly state: FakeState
  /** Every request as `METHOD path?query`, with its body. */
  readonly requests: Array<{ readonly line: string; readonly body: string }>
  /** Where each connection to the live feed began. */
  readonly feedBeginnings: Array<string | null>
}

export const token = "secret-token"

/** Starts the server for the scope of a test. */
export const fakeServer = (state: Partial<FakeState> = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const fake = {
          state: { ...emptyState(), ...state },
          requests: [] as FakeServer["requests"],
          feedBeginnings: [] as FakeServer["feedBeginnings"]
        }
        const server = Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          idleTimeout: 0,
          fetch: (request) => answer(fake, request)
        })
        return { server, fake }
      }),
      ({ server }) => Effect.promise(() => server.stop(true))
    ),
    ({ fake, server }): FakeServer => ({ ...fake, url: `http://127.0.0.1:${server.port}` })
  )

const emptyState = (): FakeState => ({
  projects: [{ id: id("project", 1), name: "Demo", createdAt: at(0) }],
  agents: [],
  runs: [],
  steps: [],
  tasks: [],
  events: [],
  conversations: [],
  importLines: [],
  importAnswers: [],
  stopped: new Map(),
  exportText: "",
  failing: new Map()
})

type Fake = Omit<FakeServer, "url">

const answer = async (fake: Fake, request: Request): Promise<Response> => {
  const url = new URL(request.url)
  const body = await request.text()
  fake.requests.push({ line: `${request.method} ${url.pathname}${url.search}`, body })
  if (request.headers.get("accept")?.includes("text/event-stream"))
    fake.feedBeginnings.push(beginningOf(request))
  if (url.pathname === "/ready") return Response.json({ status: "ok", version: "0.1.0" })
  if (request.headers.get("authorization") !== `Bearer ${token}`)
    return problem(401, "A valid token is needed")
  const failing = fake.state.failing.get(url.pathname)
  if (failing)
    return Response.json(failing.body, {
      status: failing.status,
      headers: { "content-type": "application/problem+json", ...failing.headers }
    })
  const path = url.pathname.replace(/^\/api\/projects\/[^/]+/, "")
  return route(
    fake.state,
    request,
    `${request.method} ${url.pathname === "/api/projects" ? url.pathname : path}`,
    url.searchParams,
    body
  )
}

const route = (
  state: FakeState,
  request: Request,
  line: string,
  query: URLSearchParams,
  body: string
): Response => {
  const status = query.get("status")
  switch (line) {
    case "GET /api/projects":
      return page(state.projects, query)
    case "POST /api/projects": {
      const made: Project = {
        id: id("project", state.projects.length + 1),
        name: JSON.parse(body).name,
        createdAt: at(0)
      }
      state.projects.push(made)
      return Response.json(made, { status: 201 })
    }
    case "GET /kill-switch":
    case "GET /api/kill-switch":
      return Response.json({ stopped: state.stopped.get(line.slice(4)) ?? null })
    case "PUT /kill-switch":
    case "PUT /api/kill-switch":
      return turnSwitch(state, line.slice(4), body)
    case "GET /agents":
      return page(state.agents, query)
    case "POST /agents":
      return createAgent(state, body)
    case "POST /agents/apply":
      return applyAgents(state, body)
    case "GET /runs":
      return page(
        state.runs.filter(
          (run) => (status === null || run.status === status) && matches(query, "agentId", run.agentId)
        ),
        query
      )
    case "GET /tasks":
      return page(
        state.tasks.filter((task) => isWanted(task, query)),
        query
      )
    case "POST /tasks": {
      const made = todo(1 + state.tasks.filter(isTodo).length, JSON.parse(body))
      state.tasks = [made, ...state.tasks]
      return Response.json(made, { status: 201 })
    }
    case "GET /events":
      return request.headers.get("accept")?.includes("text/event-stream")
        ? liveEvents(state, request)
        : eventPage(state, query)
    case "POST /import":
      return new Response(
        (state.importAnswers.shift() ?? state.importLines)
          .map((one) => (typeof one === "string" ? one : `${JSON.stringify(one)}\n`))
          .join(""),
        { headers: { "content-type": "application/x-ndjson" } }
      )
    case "GET /export":
      return new Response(state.exportText, {
        headers: {
          "content-type": "application/x-ndjson",
          "tropism-objects": "2",
          "tropism-relationships": "0"
        }
      })
    default:
      return answerOfConversations(state, line, query, body) ?? routeById(state, line, query, body)
  }
}

const turnSwitch = (state: FakeState, path: string, body: string): Response => {
  const { stopped, reason } = JSON.parse(body)
  const scope = path === "/kill-switch" ? "project" : "server"
  if (stopped) state.stopped.set(path, { scope, reason, stoppedBy: UserId.make("ada"), stoppedAt: at(0) })
  else state.stopped.delete(path)
  return Response.json({ stopped: state.stopped.get(path) ?? null })
}

const routeById = (state: FakeState, line: string, query: URLSearchParams, body: string): Response => {
  const [, suggester] = /^POST \/agents\/([^/]+)\/suggestions\/reject$/.exec(line) ?? []
  if (suggester !== undefined) return rejectAll(state, suggester, body)
  const [, method, kind, key, verb] = /^(\w+) \/([a-z]+)\/([^/]+)(?:\/([a-z-]+))?$/.exec(line) ?? []
  if (kind === "tasks") return routeTask(state, `${method} ${verb ?? ""}`, key, body)
  if (kind === "runs") {
    const run = state.runs.find((one) => one.id === key)
    if (!run) return problem(404, "Not found")
    if (method === "POST" && verb === "cancel")
      return Response.json({ ...run, status: "cancelled", completedAt: at(0) })
    if (method === "POST" && verb === "resume")
      return run.status === "paused"
        ? Response.json({ ...run, status: "queued", pauseReason: null })
        : problem(409, `The run is ${run.status} already`, { reason: "state" })
    if (method === "POST" && verb === "answer") return answerQuestion(state, run, body)
    if (verb === "steps") return page(state.steps, query)
    return verb === undefined ? Response.json(run) : page([], query)
  }
  if (kind === "chains") return Response.json(chainOf(state, key, query))
  if (kind === "events" && verb === "explanations")
    return page(
      state.agents.map((one) => explanation(one, key)),
      query
    )
  const agent = state.agents.find((one) => one.id === key)
  if (kind !== "agents" || !agent) return problem(404, "Not found")
  if (method === "PATCH") {
    const patched: Agent = {
      ...agent,
      ...defineAgent({ ...agent, ...JSON.parse(body) }),
      version: agent.version + 1
    }
    state.agents = state.agents.map((one) => (one.id === key ? patched : one))
    return Response.json(patched)
  }
  if (verb === "trigger") return Response.json(state.runs.at(-1), { status: 202 })
  if (verb === "explain") return Response.json(explanation(agent, query.get("eventId")))
  return problem(404, "Not found")
}

const answerQuestion = (state: FakeState, run: Run, body: string): Response => {
  const { answer, taskId } = JSON.parse(body)
  const task = state.tasks.find((one) => one.id === taskId)
  if (!task || !isQuestion(task)) return problem(422, "No such question")
  if (task.status !== "pending") return problem(409, "It is answered already", { reason: "alreadyDecided" })
  if (task.payload.options && !task.payload.options.includes(answer))
    return problem(422, "Something in the request is wrong", {
      detail: "None of the options",
      errors: [{ pointer: "/answer", message: "None of the options" }]
    })
  const answered: Task = { ...task, status: "completed", payload: { ...task.payload, answer } }
  state.tasks = state.tasks.map((one) => (one.id === taskId ? answered : one))
  return Response.json(run)
}

/** All events and runs are one chain, which its depth has stopped. */
const chainOf = (state: FakeState, rootEventId: string | undefined, query: URLSearchParams) => {
  const links = [
    ...state.events.map((event) => ({ type: "event", id: event.id, event, undoneBy: null })),
    ...state.runs.map((run) => ({ type: "run", id: run.id, run }))
  ]
  const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit"))]
  return {
    rootEventId,
    rootEvent: state.events.find((event) => event.id === rootEventId) ?? null,
    use: { depth: 1, runs: state.runs.length, inputTokens: 10, outputTokens: 2, costUsd: 0.0125 },
    limits: { maxDepth: 1, maxRuns: 100, maxTokens: null, maxCostUsd: 0.5 },
    counts: { events: state.events.length, runs: state.runs.length, tasks: 0, refusals: 1 },
    stops: [{ eventId: rootEventId, agentId: id("agent", 1), rule: "chainDepth", reason: "1 of at most 1." }],
    items: links.slice(from, from + limit),
    nextCursor: from + limit < links.length ? String(from + limit) : null
  }
}

/** Every agent ignores its own changes, except the one that is awake. */
const explanation = (agent: Agent, eventId: string | null | undefined) => {
  const isAwake = agent.name === "awake"
  return {
    agentId: agent.id,
    agentName: agent.name,
    agentVersion: agent.version,
    eventId,
    outcome: isAwake ? "woke" : "refused",
    rule: isAwake ? null : "selfTriggered",
    reason: isAwake ? "Woken." : "Its own change.",
    entry: null,
    run: isAwake ? { id: id("run", 1), status: "queued" } : null
  }
}

const routeTask = (state: FakeState, line: string, key: string | undefined, body: string): Response => {
  const task = state.tasks.find((one) => one.id === key)
  if (!task) return problem(404, "Not found")
  if (line === "GET ") return Response.json(task)
  if (isTodo(task) && !/approve|reject/.test(line)) {
    const changed = changedTodo(line, task, body)
    state.tasks = [...(changed ? [changed] : []), ...state.tasks.filter(({ id: other }) => other !== key)]
    return changed ? Response.json(changed) : new Response(null, { status: 204 })
  }
  if (task.status !== "pending")
    return problem(409, "The task is decided already", { reason: "alreadyDecided" })
  const input = JSON.parse(body)
  if (line === "POST approve" && !isTodo(task) && input.digest !== task.digest)
    return problem(409, "The suggestion is another one now", { reason: "digestMismatch" })
  if (!isSuggestion(task)) return problem(409, "There is nothing to decide", { reason: "state" })
  const decided: Task =
    line === "POST approve"
      ? {
          ...task,
          status: "completed",
          outcome: { entityId: id("object", 1), version: 3, change: "updated" }
        }
      : { ...task, status: "rejected", resolutionNote: input.reason }
  state.tasks = state.tasks.map((one) => (one.id === key ? decided : one))
  return Response.json(decided)
}

const rejectAll = (state: FakeState, agentId: string, body: string): Response => {
  const isMeant = (task: Task) => isSuggestion(task) && task.agentId === agentId && task.status === "pending"
  const rejected = state.tasks.filter(isMeant).length
  const { reason: resolutionNote } = JSON.parse(body)
  state.tasks = state.tasks.map((task) =>
    isMeant(task) ? { ...task, status: "rejected", resolutionNote } : task
  )
  return Response.json({ rejected })
}

const decodeAgent = Schema.decodeUnknownSync(AgentInput, { onExcessProperty: "error" })

const createAgent = (state: FakeState, body: string): Response => {
  const made: Agent = {
    ...defineAgent(decodeAgent(JSON.parse(body))),
    id: id("agent", state.agents.length + 1),
    version: 1,
    disabledReason: null,
    nextFireAt: null,
    warnings: [],
    createdAt: at(0),
    updatedAt: at(0)
  }
  state.agents.push(made)
  return Response.json(made, { status: 201 })
}

/** Creates and updates by name, as the server does when nothing is wrong; it prunes nothing. */
const applyAgents = (state: FakeState, body: string): Response => {
  const { agents, dryRun }: ApplyInput = JSON.parse(body)
  const applied = agents.map((input): AppliedAgent => {
    const agent = state.agents.find(({ name }) => name === input.name)
    const definition = defineAgent(decodeAgent(input))
    const changes = agent ? diffJson(definitionOf(agent), definition) : []
    const warnings = findWarnings(definition, [])
    if (agent && changes.length === 0)
      return {
        name: agent.name,
        outcome: "unchanged",
        id: agent.id,
        version: agent.version,
        changes,
        warnings
      }
    const version = agent ? agent.version + 1 : 1
    if (agent && dryRun !== true)
      state.agents = state.agents.map((one) => (one === agent ? { ...agent, ...definition, version } : one))
    if (agent === undefined && dryRun !== true) createAgent(state, JSON.stringify(input))
    const id = agent?.id ?? state.agents.find(({ name }) => name === input.name)?.id ?? null
    return { name: input.name, outcome: agent ? "updated" : "created", id, version, changes, warnings }
  })
  return Response.json({ dryRun: dryRun === true, agents: applied })
}

const matches = (query: URLSearchParams, name: string, value: string): boolean =>
  (query.get(name) ?? value) === value

/** Newest first, with the place to go on from as the cursor. */
const page = (items: ReadonlyArray<unknown>, query: URLSearchParams): Response => {
  const from = Number(query.get("cursor") ?? 0)
  const limit = Math.min(Number(query.get("limit") ?? 50), 200)
  const next = from + limit
  return Response.json({
    items: items.slice(from, next),
    nextCursor: next < items.length ? String(next) : null
  })
}

const eventPage = (state: FakeState, query: URLSearchParams): Response =>
  page(
    state.events.filter((event) => (event.position ?? 0) > Number(query.get("after") ?? 0)),
    query
  )

/** What was heard last counts more than what the address says. */
const beginningOf = ({ headers, url }: Request): string | null =>
  headers.get("last-event-id") ?? new URL(url).searchParams.get("after")

/** Sends what there is after the place that is asked for, and stays open. */
const liveEvents = (state: FakeState, request: Request): Response => {
  const after = Number(beginningOf(request) ?? 0)
  const text = state.events
    .filter((event) => (event.position ?? 0) > after)
    .map((event) => `id: ${event.position}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  const encoder = new TextEncoder()
  return new Response(
    new ReadableStream({
      start: (controller) =>
        controller.enqueue(encoder.encode(`id: ${after}\nretry: 1000\n\n${text.join("")}`))
    }),
    { headers: { "content-type": "text/event-stream" } }
  )
}

const problem = (status: number, detail: string, more: object = {}): Response => {
  const types: Record<number, string> = {
    401: "unauthorized",
    404: "not-found",
    409: "conflict",
    422: "invalid-input"
  }
  return Response.json(
    { type: `/problems/${types[status]}`, status, title: detail, detail: `${detail}.`, ...more },
    { status, headers: { "content-type": "application/problem+json" } }
  )
}
