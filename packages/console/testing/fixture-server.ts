/**
 * Answers the console as the contract says, from a world in memory, and serves the built console.
 *
 * Used only by the console's own tests: it is not the server and proves
 * nothing about it. A test may change the world between two requests.
 */
import { existsSync, readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { extname, join } from "node:path"
import type { Conflict } from "@tropism/api/problems"
import { changedProperties, mergePatch, type Properties } from "@tropism/domain/json"
import { isQuestion, isSuggestion, isTodo, type SuggestionTask, type Task } from "@tropism/domain/task"
import { consolePolicy } from "../../server/src/http/guarded.ts"
import type { World } from "./fixture-world.ts"

export interface FixtureServer {
  readonly url: string
  readonly world: World
  /** Begins anew with another world: everybody is hung up on, and nothing is remembered. */
  readonly reset: (world: World) => void
  /** The decisions that came in, with what they carried. */
  readonly decisions: Array<{ readonly path: string; readonly body: Record<string, unknown> }>
  /** Who a session is; null refuses every request as signed out. */
  session: { role: "viewer" | "editor" | "reviewer" | "admin" } | null
  /** Addresses that are answered only when somebody lets them go: what the address must contain. */
  held: string | null
  /** How many requests wait to be let go. */
  readonly heldCount: () => number
  /** Answers what was held, and holds nothing any more. */
  readonly letGo: () => void
  /** While true, every request is cut off without an answer. */
  isDown: boolean
  /** While false, the feed answers 503. */
  hasFeed: boolean
  /** Tells every open feed that something was committed. */
  readonly ring: () => void
  readonly openFeeds: () => number
  /** Ends every open feed, as a restarting server does. */
  readonly hangUp: () => void
  readonly close: () => Promise<void>
}

export const fixtureToken = "tropism-token-of-the-fixture"

const mimeTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml"
}

/** Serves the console that was built into `folder`. */
export const startFixtureServer = async (world: World, folder: string): Promise<FixtureServer> => {
  const feeds = new Set<ServerResponse>()
  const waiting: Array<() => void> = []
  let eventCount = 0
  const fixture: Mutable<FixtureServer> = {
    url: "",
    world,
    reset: (world) => {
      fixture.hangUp()
      fixture.letGo()
      Object.assign(fixture, {
        world,
        decisions: [],
        session: { role: "admin" },
        isDown: false,
        hasFeed: true
      })
    },
    decisions: [],
    session: { role: "admin" },
    held: null,
    heldCount: () => waiting.length,
    letGo: () => {
      fixture.held = null
      for (const go of waiting.splice(0)) go()
    },
    isDown: false,
    hasFeed: true,
    ring: () => {
      eventCount += 1
      for (const feed of feeds)
        feed.write(`id: ${eventCount}\nevent: graph\ndata: {"position":${eventCount}}\n\n`)
    },
    openFeeds: () => feeds.size,
    hangUp: () => {
      for (const feed of feeds) feed.end()
    },
    close: () => close(server, feeds)
  }
  const server = createServer((request, response) => {
    if (fixture.isDown) request.socket.destroy()
    else if (fixture.held !== null && request.url?.includes(fixture.held) === true)
      waiting.push(() => void answer(fixture, { feeds, folder }, request, response))
    else void answer(fixture, { feeds, folder }, request, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  const address = server.address()
  fixture.url = `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`
  return fixture
}

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

const close = (server: Server, feeds: Set<ServerResponse>): Promise<void> =>
  new Promise((resolve) => {
    for (const feed of feeds) feed.end()
    server.closeAllConnections()
    server.close(() => resolve())
  })

const answer = async (
  fixture: FixtureServer,
  { feeds, folder }: { readonly feeds: Set<ServerResponse>; readonly folder: string },
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  const url = new URL(request.url ?? "/", "http://fixture")
  const { pathname } = url
  if (pathname === "/login" || pathname === "/logout") return sign(fixture, request, response)
  if (!pathname.startsWith("/api/")) return serveFile(folder, pathname, response)
  if (!fixture.session) return problem(response, 401, "A valid token is needed")
  if (pathname === "/api/me")
    return json(response, { userId: "admin", role: fixture.session.role, projectIds: null, roles: null })
  if (pathname === "/api/projects") return page(response, fixture.world.projects)
  const [, , , projectId, kind = "", id, verb] = pathname.split("/")
  if (!fixture.world.projects.some((project) => project.id === projectId))
    return problem(response, 404, "Not found")
  if (kind === "events" && !fixture.hasFeed)
    return problem(response, 503, "The server cannot work at the moment")
  if (kind === "events") return openFeed(feeds, response)
  if (kind === "tasks" && verb !== undefined) {
    const body: Record<string, unknown> = JSON.parse(await bodyOf(request))
    fixture.decisions.push({ path: pathname, body })
    return decide(fixture, id ?? "", verb, body, response)
  }
  if (kind === "runs" && verb === "answer") {
    const body: Record<string, unknown> = JSON.parse(await bodyOf(request))
    fixture.decisions.push({ path: pathname, body })
    return answerQuestion(fixture, body, response)
  }
  return readRows(fixture.world, kind, id, verb, url, response)
}

const readRows = (
  world: World,
  kind: string,
  id: string | undefined,
  verb: string | undefined,
  url: URL,
  response: ServerResponse
): void => {
  if (kind === "tasks" && id === undefined) {
    const status = url.searchParams.get("status")
    return page(response, world.tasks.filter((task) => task.status === status).toReversed())
  }
  if (kind === "runs") return page(response, world.runs.slice(0, Number(url.searchParams.get("limit"))))
  if (kind === "objects" && verb === "history")
    return page(response, world.versions.get(id ?? "")?.toReversed() ?? [])
  const found =
    kind === "tasks"
      ? world.tasks.find((task) => task.id === id)
      : (kind === "objects" ? world.objects : world.relationships).get(id ?? "")
  return found ? json(response, found) : problem(response, 404, "Not found")
}

const sign = (fixture: FixtureServer, request: IncomingMessage, response: ServerResponse): void => {
  const isSignIn = request.url === "/login"
  if (request.method !== "POST") return problem(response, 404, "Not found")
  if (isSignIn && request.headers.authorization !== `Bearer ${fixtureToken}`)
    return problem(response, 401, "A valid token is needed")
  fixture.session = isSignIn ? { role: "admin" } : null
  response.writeHead(204).end()
}

/** Decides as the server would: once, for the payload that was seen, on what did not move. */
const decide = (
  fixture: FixtureServer,
  id: string,
  verb: string,
  body: Record<string, unknown>,
  response: ServerResponse
): void => {
  const { world } = fixture
  const place = world.tasks.findIndex((task) => task.id === id)
  const task = world.tasks[place]
  if (!task) return problem(response, 404, "Not found")
  if (!isSuggestion(task) && !isQuestion(task) && (verb === "complete") === isTodo(task)) {
    if (task.status !== "pending")
      return problem(response, 409, "The present state does not allow this", "alreadyDecided")
    world.tasks[place] = { ...task, status: verb === "reject" ? "rejected" : "completed" }
    return json(response, world.tasks[place])
  }
  if (!isSuggestion(task)) return problem(response, 409, "The present state does not allow this", "state")
  const isApproval = verb === "approve"
  const reason = refusalOf(world, task, isApproval ? body["digest"] : undefined)
  if (reason) return problem(response, 409, "The present state does not allow this", reason)
  const decided: Task = {
    ...task,
    status: isApproval ? "completed" : "rejected",
    resolvedBy: "admin" as Task["resolvedBy"],
    resolutionNote: typeof body["reason"] === "string" ? body["reason"] : null,
    resolvedAt: new Date().toISOString(),
    outcome: isApproval ? applyChange(world, task) : null
  }
  world.tasks[place] = decided
  json(response, decided)
  if (isApproval) fixture.ring()
}

/** Takes an answer as the server would: once, and only one of the options where there are any. */
const answerQuestion = (
  { world }: FixtureServer,
  { answer, taskId }: Record<string, unknown>,
  response: ServerResponse
): void => {
  const place = world.tasks.findIndex((task) => task.id === taskId)
  const task = world.tasks[place]
  if (!task || !isQuestion(task) || typeof answer !== "string")
    return problem(response, 422, "Something in the request is wrong")
  if (task.status !== "pending")
    return problem(response, 409, "The present state does not allow this", "alreadyDecided")
  world.tasks[place] = { ...task, status: "completed", payload: { ...task.payload, answer } }
  json(response, { id: task.runId, status: "queued" })
}

const refusalOf = (world: World, task: SuggestionTask, digest: unknown): Conflict["reason"] | undefined => {
  if (task.status !== "pending") return "alreadyDecided"
  if (digest === undefined) return undefined
  if (digest !== task.digest) return "digestMismatch"
  const change = task.payload.suggestedChanges
  if (change.type !== "update" || task.target === null) return undefined
  const base = world.versions.get(task.target.id)?.find(({ version }) => version === task.baseVersion)
  const moved = base ? changedProperties(base.properties, task.target.properties) : []
  return moved.some((name) => name in change.data) ? "outdated" : undefined
}

const applyChange = (world: World, task: SuggestionTask): SuggestionTask["outcome"] => {
  const change = task.payload.suggestedChanges
  if (change.type === "create") return { entityId: task.id, version: 1, change: "created" }
  if (change.type === "createRelationship") return { entityId: task.id, version: 1, change: "created" }
  if (change.type === "updateRelationship")
    return { entityId: change.relationshipId, version: 2, change: "updated" }
  if (change.type === "deleteRelationship") return { entityId: task.id, version: 2, change: "deleted" }
  const object = world.objects.get(change.objectId)
  const version = (object?.version ?? 0) + 1
  if (change.type === "delete") {
    world.objects.delete(change.objectId)
    return { entityId: change.objectId, version, change: "deleted" }
  }
  if (object) {
    const properties = mergePatch(object.properties, change.data) as Properties
    world.objects.set(object.id, { ...object, properties, version })
  }
  return { entityId: change.objectId, version, change: "updated" }
}

const openFeed = (feeds: Set<ServerResponse>, response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" })
  response.write(": open\n\n")
  feeds.add(response)
  response.on("close", () => feeds.delete(response))
}

const bodyOf = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    request.on("data", (chunk) => {
      text += String(chunk)
    })
    request.on("end", () => resolve(text))
  })

const page = (response: ServerResponse, items: ReadonlyArray<unknown>): void =>
  json(response, { items, nextCursor: null })

const json = (response: ServerResponse, value: unknown): void => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value))
}

const problem = (
  response: ServerResponse,
  status: number,
  title: string,
  reason?: Conflict["reason"]
): void => {
  response
    .writeHead(status, { "content-type": "application/problem+json" })
    .end(JSON.stringify({ type: "/problems/fixture", status, title, ...(reason && { reason }) }))
}

/** Every address without a file of its own is a page of the console. */
const serveFile = (folder: string, pathname: string, response: ServerResponse): void => {
  const file = join(folder, pathname)
  const isFile = extname(pathname) !== "" && file.startsWith(folder) && existsSync(file)
  const path = isFile ? file : join(folder, "index.html")
  const type = mimeTypes[extname(path)] ?? "application/octet-stream"
  // Asset names carry a hash of their content, so that a browser may keep them.
  const caching = pathname.startsWith("/assets/") ? "max-age=86400, immutable" : "no-cache"
  // Every test sees the console under the policy that the real server sends with it.
  response
    .writeHead(200, {
      "content-type": type,
      "cache-control": caching,
      "content-security-policy": consolePolicy
    })
    .end(readFileSync(path))
}
