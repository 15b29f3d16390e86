/**
 * What goes wrong, as errors for programs without Effect.
 *
 * A refusal is a `TropismProblem` with the whole problem document of the server
 * (RFC 9457); a server that does not answer is a `TropismUnreachable`. Both know
 * the request's id where there is one: the server's log has it, too.
 */
import type { HttpClientResponse } from "effect/http"
import { retryAfterMs } from "../retrying.ts"

/** A problem document: its members beside these depend on its `type`. */
export interface ProblemDocument {
  readonly type: string
  readonly status: number
  readonly title: string
  readonly detail?: string
  readonly instance?: string
  readonly [member: string]: unknown
}

/** The server said no. */
export class TropismProblem extends Error {
  override readonly name = "TropismProblem"
  /** Which problem: `conflict`, `not-found`, `invalid-input` …; `/problems` of the server explains each. */
  readonly type: string
  readonly status: number
  /** The document as it came, with the members that only this problem has. */
  readonly problem: ProblemDocument
  readonly requestId: string | undefined
  /** When trying again makes sense, where the server says so. */
  readonly retryAfterMs: number | undefined

  constructor(response: HttpClientResponse.HttpClientResponse, problem: ProblemDocument) {
    super(problem.detail ?? problem.title)
    this.type = problem.type.replace(/^.*\/problems\//, "")
    this.status = problem.status
    this.problem = problem
    this.requestId = response.headers["x-request-id"] ?? problem.instance?.replace(/^\/requests\//, "")
    this.retryAfterMs = retryAfterMs(response)
  }
}

/** No server answers there, or its answer broke off, as often as it was tried. */
export class TropismUnreachable extends Error {
  override readonly name = "TropismUnreachable"
}

/** What answers there is no Tropism, or one of another version. */
export class TropismUnreadable extends Error {
  override readonly name = "TropismUnreadable"
  readonly status: number
  readonly requestId: string | undefined

  constructor(response: HttpClientResponse.HttpClientResponse, quoted: string) {
    super(`The answer (${response.status}) is not what a Tropism server says: ${quoted}`)
    this.status = response.status
    this.requestId = response.headers["x-request-id"]
  }
}

/** Whether an error is a problem that the server told, of this type where one is named. */
export const isProblem = (error: unknown, type?: string): error is TropismProblem =>
  error instanceof TropismProblem && (type === undefined || error.type === type)
