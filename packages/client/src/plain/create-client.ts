/**
 * The client for programs that know nothing of Effect: promises, async iterators and fetch.
 *
 * Its calls are those of the contract, grouped as there. The ids of a call come
 * first, then what is sent (or, where nothing is, the query), then options. A
 * call is typed by what the contract says of it (`contract.gen.ts`); nothing is
 * checked here, the server judges what it is given.
 */
import { Effect, Redacted, Stream } from "effect"
import { connectionFault } from "../connection.ts"
import { limits } from "../limits.ts"
import {
  type Asked,
  ask,
  type Line,
  linesOf,
  lineTo,
  type Query,
  valueOf,
  wholeBytes,
  wholeText
} from "./asking.ts"
import type { AskingOptions, CallOptions, EndpointPlace } from "./call-shapes.ts"
import { chatEventsOf } from "./chat-events.ts"
import { type Calls, endpoints } from "./contract.gen.ts"
import { listingOf } from "./listing.ts"
import { feedOf, hasEnded } from "./live.ts"
import type { Beside, CreateClientOptions, PlainClient } from "./plain-client.ts"
import { iterated, promised } from "./running.ts"

/** Any call: `Calls` says what each takes and answers. */
type Call = (...args: ReadonlyArray<unknown>) => unknown

/** Connects nothing yet: the first call shows whether the server answers. Throws a `TypeError` where none ever could. */
export const createClient = (options: CreateClientOptions): PlainClient => {
  const connection = {
    url: options.url.replace(/\/+$/, ""),
    token: options.token === undefined ? undefined : Redacted.make(options.token)
  }
  const fault = connectionFault(connection)
  if (fault !== undefined) throw new TypeError(fault)
  const line = lineTo(connection, options.retries ?? limits.retries, options.fetch ?? globalThis.fetch)
  return clientIn(line, options)
}

const clientIn = (line: Line, options: CreateClientOptions): PlainClient => {
  const project = options.project === undefined ? onlyProject(line) : Effect.succeed(options.project)
  const groups: Record<string, Record<string, Call>> = {}
  for (const endpoint of endpoints) {
    const [group = "", call = ""] = endpoint.call.split(".")
    groups[group] = { ...groups[group], [call]: callOf(line, project, endpoint) }
  }
  const within = (path: string, method = "GET", body?: unknown, options: CallOptions = {}) =>
    Effect.map(project, (id): Asked => ({
      method,
      path: `/api/projects/${encodeURIComponent(id)}${path}`,
      body,
      headers: headersOf(options)
    }))
  const beside: Beside = {
    events: (live = {}) => feedOf(line, within("/events"), live),
    contextEvents: (name, live = {}) =>
      feedOf(line, within(`/contexts/${encodeURIComponent(name)}/events`), live),
    runEvents: (runId, live = {}) => {
      const run = `/runs/${encodeURIComponent(runId)}`
      return feedOf(line, within(`${run}/events`), live, hasEnded(line, within(run)))
    },
    chatEvents: (message, told = {}) => chatEventsOf(line, within("/chat", "POST", message, told), told),
    in: (id) => clientIn(line, { ...options, project: id })
  }
  // The table and the type are printed from one document.
  return Object.assign(groups as object as Calls, beside)
}

/** The project where none was named: asked for once, and once more after a failure. */
const onlyProject = (line: Line): Effect.Effect<string, Error> => {
  let known: string | undefined
  const find = Effect.gen(function* () {
    const answer = yield* ask(line, { method: "GET", path: "/api/projects", query: { limit: 2 } })
    const { items } = (yield* valueOf(answer)) as { readonly items: ReadonlyArray<{ readonly id: string }> }
    const [project] = items
    if (project && items.length === 1) return (known = project.id)
    const fault = project ? "more than one project" : "no project"
    return yield* Effect.fail(
      new TypeError(`The token reaches ${fault}: give createClient the id of one as project.`)
    )
  })
  return Effect.suspend(() => (known === undefined ? find : Effect.succeed(known)))
}

const headersOf = ({ headers, idempotencyKey }: CallOptions) => ({
  ...headers,
  ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
})

/** The function behind one endpoint: ids, what is sent, else what is asked, and options. */
const callOf = (line: Line, project: Effect.Effect<string, Error>, endpoint: EndpointPlace): Call => {
  const { asks, form, method, path, sends } = endpoint
  const names = [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name = ""]) =>
    name === "projectId" ? [] : [name]
  )
  return (...args) => {
    const ids = args.slice(0, names.length)
    const missing = names.find((_, place) => ids[place] === undefined || ids[place] === "")
    if (missing !== undefined) return rejected(form, `${endpoint.call} needs ${names.join(", ")} first`)
    const rest: ReadonlyArray<unknown> = args.slice(names.length)
    const said = sends || asks ? rest[0] : undefined
    const options = ((sends || asks ? rest[1] : rest[0]) ?? {}) as AskingOptions<Query>
    const place = path.replace(/\{(\w+)\}/g, (found, name: string) =>
      name === "projectId" ? found : encodeURIComponent(String(ids[names.indexOf(name)]))
    )
    const call = {
      method,
      query: sends ? options.query : { ...(said as Query | undefined), ...options.query },
      body: sends ? (said ?? {}) : undefined,
      headers: headersOf(options)
    }
    const asked = path.includes("{projectId}")
      ? Effect.map(project, (id): Asked => ({
          ...call,
          path: place.replace("{projectId}", encodeURIComponent(id))
        }))
      : Effect.succeed<Asked>({ ...call, path: place })
    return answerIn(form, line, asked, options.signal)
  }
}

const rejected = (form: EndpointPlace["form"], reason: string) => {
  const error = new TypeError(reason)
  if (form === "value" || form === "bytes" || form === "text") return Promise.reject(error)
  throw error
}

const answerIn = (
  form: EndpointPlace["form"],
  line: Line,
  asked: Effect.Effect<Asked, Error>,
  signal: AbortSignal | undefined
) => {
  const answered = Effect.flatMap(asked, (call) => ask(line, call))
  switch (form) {
    case "page":
      return listingOf(line, asked, signal)
    case "lines":
      return iterated(Stream.unwrap(Effect.map(asked, (call) => linesOf(line, call))), signal)
    case "bytes":
      return promised(Effect.flatMap(answered, wholeBytes), signal)
    case "text":
      return promised(Effect.flatMap(answered, wholeText), signal)
    case "value":
      return promised(Effect.flatMap(answered, valueOf), signal)
  }
}
