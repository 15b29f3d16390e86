/**
 * The whole server for a story: a fresh database, every stage, real HTTP.
 *
 * A story speaks to it only through the doors, as anybody would, and each answer
 * is held against the OpenAPI document. Nothing is
 * faked but the language model, which is the scripted one and says so. Waiting
 * is always for something that can be seen, and bounded.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Clock,
  ConfigProvider,
  Deferred,
  Effect,
  Fiber,
  identity,
  Logger,
  Redacted,
  Schedule,
  type Scope
} from "effect"
import { DispatchPauseMs } from "../src/reactions/dispatcher.ts"
import type { ClusterAddress } from "../src/cluster/peers.ts"
import { type Ready, type ServeOptions, serveOn } from "../src/main.ts"
import { contractFault } from "./contract-faults.ts"
import { freshDatabase } from "./fresh-database.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"

/** Any JSON that a door answered; a story says what it expects of it. */
// oxlint-disable-next-line typescript/no-explicit-any -- stories read answers of every shape
export type Json = any

export interface Answer {
  readonly status: number
  readonly body: Json
  readonly headers: Headers
}

export interface Doors {
  readonly url: string
  readonly token: string
  /** Signs one browser in, once. */
  readonly loginLink: string
  /** Sends a request; `path` begins with `/`. */
  readonly send: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>
  ) => Effect.Effect<Answer>
}

/** A project of its own inside a running server. */
export interface Story extends Doors {
  readonly projectId: string
  readonly get: (path: string) => Effect.Effect<Json>
  readonly post: (path: string, body?: unknown) => Effect.Effect<Json>
  readonly patch: (path: string, body: unknown) => Effect.Effect<Json>
  readonly delete: (path: string) => Effect.Effect<Answer>
  /** The answer with its status, for stories of refusals. */
  readonly ask: (method: string, path: string, body?: unknown) => Effect.Effect<Answer>
  readonly access: PostgresAccess
}

/** The admin's token on every server of a story. */
export const storyToken = "a-token-for-stories"

/** What every server of a story seals secrets with. */
export const storyKeys = Buffer.alloc(32, 1).toString("base64")

/** Runs that a story's server works on at once, unless the story says otherwise: so few that a story can take them all. */
export const slots = 16

const fewSlots = ConfigProvider.fromEnv({ env: { TROPISM_CONCURRENT_RUNS: `${slots}` } })

/** Starts the server on a database of its own, until the scope ends; what it logs goes to the loggers given. */
export const startServer = Effect.fn("startServer")(function* (
  access: PostgresAccess,
  loggers: ReadonlyArray<Logger.Logger<unknown, unknown>> = [],
  consoleFolder?: string,
  extraRoutes?: ServeOptions["extraRoutes"],
  keys = storyKeys,
  cluster?: ClusterAddress,
  stopped?: string
) {
  const ready = yield* Deferred.make<Ready>()
  // The test's clock stands still while a story waits: there a pause would last until the story moves it.
  const isTestClock = "setTime" in (yield* Clock.Clock)
  const server = yield* serveOn(access, {
    host: "127.0.0.1",
    port: 0,
    dataFolder: "/nonexistent",
    encryptionKeys: Redacted.make(keys),
    token: Redacted.make(storyToken),
    consoleFolder,
    cluster,
    extraRoutes,
    stopped,
    // A story that is over waits for nobody.
    leaveNoticeMs: 0,
    onReady: (info) => Effect.asVoid(Deferred.succeed(ready, info))
  }).pipe(
    Effect.scoped,
    Effect.updateService(ConfigProvider.ConfigProvider, ConfigProvider.orElse(fewSlots)),
    Effect.provide([NodeServices.layer, Logger.layer(loggers)]),
    isTestClock ? Effect.provideService(DispatchPauseMs, 0) : identity,
    Effect.orDie,
    Effect.forkScoped
  )
  const { url, loginLink } = yield* Effect.raceFirst(Deferred.await(ready), Fiber.join(server))
  return doorsAt(url, loginLink)
})

/** The doors of a server that runs somewhere. */
export const doorsAt = (url: string, loginLink: string): Doors => ({
  url,
  token: storyToken,
  loginLink,
  send: (method, path, body, headers = {}) =>
    Effect.promise(() =>
      fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${storyToken}`,
          // A refusal tells its request's id: with one for all, a story can say that two refusals are the same.
          "x-request-id": "story",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        redirect: "manual",
        ...(body === undefined ? {} : { body: asSent(body) })
      }).then((response) =>
        response.text().then((text) =>
          documented(method, path, {
            status: response.status,
            headers: response.headers,
            body: text === "" ? null : parse(text)
          })
        )
      )
    )
})

/** An answer that the OpenAPI document tells of; whatever a story asks, another one is a fault. */
const documented = (method: string, path: string, answer: Answer): Answer => {
  const contentType = answer.headers.get("content-type")
  const fault = contractFault(method, path, { ...answer, contentType })
  if (fault === undefined) return answer
  throw new Error(
    `An answer is not in the OpenAPI document: ${fault}, in ${answer.status} ${JSON.stringify(answer.body)?.slice(0, 2_000)}`
  )
}

/** Text and bytes go as they are, all else as JSON. */
const asSent = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  typeof body === "string" ? body : body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)

const parse = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Makes a project in a running server. */
export const newProject = Effect.fn("newProject")(function* (doors: Doors, access: PostgresAccess) {
  const made = yield* doors.send("POST", "/api/projects", { name: "A story" })
  return storyIn(doors, access, made.body.id)
})

/** A project that is there already, through the doors of a server. */
export const storyIn = (doors: Doors, access: PostgresAccess, projectId: string): Story => {
  const ask = (method: string, path: string, body?: unknown) =>
    doors.send(method, `/api/projects/${projectId}${path}`, body)
  const expectOk = (method: string) => (path: string, body?: unknown) =>
    Effect.flatMap(ask(method, path, body), (answer) =>
      answer.status < 300
        ? Effect.succeed(answer.body)
        : Effect.die(new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`))
    )
  return {
    ...doors,
    projectId,
    access,
    ask,
    get: (path) => expectOk("GET")(path),
    post: (path, body) => expectOk("POST")(path, body ?? {}),
    patch: (path, body) => expectOk("PATCH")(path, body),
    delete: (path) => ask("DELETE", path)
  }
}

/** A server with an empty project, until the scope ends. */
export const newStory: Effect.Effect<Story, never, Scope.Scope> = Effect.gen(function* () {
  const access = yield* freshDatabase
  return yield* newProject(yield* startServer(access), access)
})

/**
 * Looks again and again until what is seen satisfies; dies with the last sight when that takes too long.
 *
 * **Details** It waits on the wall's clock, also in a story that moves the server's own. Each look is work for the
 * server that is waited for, so that they become rarer.
 */
export const eventually = <A>(
  look: Effect.Effect<A>,
  satisfies: (seen: A) => boolean,
  withinMs = 30_000,
  pausesMs: readonly [first: number, longest: number] = [10, 60]
): Effect.Effect<A> => {
  const [first, longest] = pausesMs
  const pauses = Schedule.min([Schedule.exponential(first, 1.25), Schedule.spaced(longest)])
  return look.pipe(
    Effect.flatMap((seen) => (satisfies(seen) ? Effect.succeed(seen) : Effect.fail(seen))),
    Effect.retry(Schedule.max([pauses, Schedule.recurs(Math.ceil((2 * withinMs) / longest))])),
    Effect.catch((seen) =>
      Effect.die(new Error(`It did not come to be; last seen: ${JSON.stringify(seen)?.slice(0, 2_000)}`))
    ),
    Effect.provideService(Clock.Clock, Clock.Clock.defaultValue())
  )
}

/** A scripted model whose rules are given inline. Changes that come without a word get a reason: who decides needs one. */
export const scripted = (rules: ReadonlyArray<Record<string, unknown>>) => ({
  provider: "scripted",
  name: "story",
  script: { rules: rules.map((rule) => ("say" in rule ? rule : { ...rule, ...withReasons(rule["calls"]) })) }
})

const withReasons = (calls: unknown) =>
  Array.isArray(calls)
    ? {
        calls: calls.map((call: { readonly tool: string; readonly arguments: Json }) =>
          /^(create|update|delete)_(object|relationship)$/.test(call.tool)
            ? { ...call, arguments: { reasoning: "The story wants it", ...call.arguments } }
            : call
        )
      }
    : {}

/** The prompt that a script reads back as `input`. */
export const promptWithObject =
  '```json\n{"event": {% if event %}{{ event | json }}{% else %}null{% endif %}, "object": {% if object %}{{ object | json }}{% else %}null{% endif %}, "input": {% if input %}{{ input | json }}{% else %}null{% endif %}}\n```'
