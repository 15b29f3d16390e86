/**
 * The server that hostile input goes to, and the one way in which it goes.
 *
 * Every answer is judged here, whoever sent the request: it comes within its
 * time, it is no fault of the server, and the OpenAPI document tells of it.
 * Streams are closed as soon as their head is there.
 */
import type { ServerProcess } from "../bench/server-process.ts"
import { type Documented, documentedBy } from "../packages/server/testing/documented.ts"
import type { Json } from "../packages/server/testing/platform.ts"
import type { Findings } from "./findings.ts"

export interface Request {
  readonly method: string
  readonly path: string
  /** Text and bytes go as they are, all else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** What repeats it, where that is not the request itself. */
  readonly repeat?: string
}

export interface Answer {
  readonly status: number
  readonly contentType: string | null
  readonly body: Json
}

export interface Target {
  readonly server: ServerProcess
  readonly documented: Documented
  readonly findings: Findings
  readonly send: (request: Request) => Promise<Answer>
}

/** How long an answer may take: longer than a door waits for a run. */
const answerTimeoutMs = 90_000

/** The answer of a server that is no longer there, or that took too long. */
const nothing: Answer = { status: 0, contentType: null, body: null }

/** Opens a running server. */
export const aimAt = async (server: ServerProcess, findings: Findings): Promise<Target> => {
  const documents = await Promise.all(
    ["/openapi.json", "/v1/openapi.json"].map(async (path) =>
      documentedBy(await (await fetch(server.url + path)).json())
    )
  )
  const [documented = documentedBy({ paths: {} })] = documents
  const send = async (request: Request): Promise<Answer> => {
    findings.count("requests")
    const answer = await answerOf(server, request).catch((error: unknown) => {
      findings.add("no answer", String(error), shown(request))
      return nothing
    })
    if (answer === nothing) return nothing
    findings.count(`answered ${Math.floor(answer.status / 100)}xx`)
    const operation = documents.map((each) => each.find(request.method, request.path)).find(Boolean)
    const name =
      operation === undefined ? `${request.method} elsewhere` : `${operation.method} ${operation.path}`
    if (answer.status >= 500)
      findings.add(`${answer.status} of ${name}`, JSON.stringify(answer.body), shown(request))
    const holder = documents.find((each) => operation !== undefined && each.operations.includes(operation))
    const fault = operation && holder?.faultOf(operation, answer)
    if (fault !== undefined)
      findings.add(
        `${name} answers ${answer.status}, undocumented`,
        `${fault}: ${JSON.stringify(answer.body)}`,
        shown(request)
      )
    return answer
  }
  return { server, documented, findings, send }
}

const answerOf = async (server: ServerProcess, { body, headers, method, path }: Request): Promise<Answer> => {
  const response = await fetch(server.url + path, {
    method,
    redirect: "manual",
    signal: AbortSignal.timeout(answerTimeoutMs),
    headers: {
      authorization: `Bearer ${server.token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: asSent(body) })
  })
  const contentType = response.headers.get("content-type")
  if (contentType?.startsWith("text/event-stream")) {
    await response.body?.cancel()
    return { status: response.status, contentType, body: "" }
  }
  const text = await response.text()
  return { status: response.status, contentType, body: text === "" ? null : decoded(text, contentType) }
}

const asSent = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  typeof body === "string" ? body : body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)

/** JSON where it says that it is, else the text. */
const decoded = (text: string, contentType: string | null): Json => {
  if (!/\bjson\b/.test(contentType ?? "")) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A request as one line that repeats it. */
export const shown = ({ body, headers, method, path, repeat }: Request): string =>
  [
    ...(repeat === undefined ? [] : [repeat]),
    method,
    path,
    ...(headers === undefined ? [] : [JSON.stringify(headers)]),
    ...(body === undefined ? [] : [body instanceof Uint8Array ? `${body.length} bytes` : asSent(body)])
  ].join(" ")
