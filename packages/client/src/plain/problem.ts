/**
 * What goes wrong, as errors for programs without Effect.
 *
 * A refusal is a `TropismProblem` with the whole problem document of the server
 * (RFC 9457); a server that does not answer is a `TropismUnreachable`. Both know
 * the request's id where there is one: the server's log has it, too.
 */
import { retryAfterMs } from "../retrying.ts"
import type { Problems } from "./contract.gen.ts"

/** `conflict`, `not-found`, `invalid-input` …; `/problems` of the server explains each. */
export type ProblemName = keyof Problems

/** What an error needs to know of the answer that told it. */
interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** The finer name of a problem that has one: a conflict's `reason`. */
type CodeOf<Name extends ProblemName> = Problems[Name] extends { readonly reason: infer Reason }
  ? Reason
  : Name

/** The server said no. */
export class TropismProblem<Name extends ProblemName = ProblemName> extends Error {
  override readonly name = "TropismProblem"
  /** Which problem it is, by its name. */
  readonly type: Name
  readonly status: Problems[Name]["status"]
  /** What a person may read of it. */
  readonly detail: string
  /** The `reason` that the problem tells (`keyTaken` of a conflict), else its `type`. */
  readonly code: CodeOf<Name>
  /** The document as it came (RFC 9457), with the members that only this problem has. */
  readonly problem: Problems[Name]
  readonly requestId: string | undefined
  /** When trying again makes sense, where the server says so. */
  readonly retryAfterMs: number | undefined

  constructor(answered: Answered, problem: Problems[Name]) {
    const detail = problem.detail ?? problem.title
    super(detail)
    this.type = problem.type.replace(/^.*\/problems\//, "") as Name
    this.status = problem.status
    this.detail = detail
    this.code = ("reason" in problem ? problem.reason : this.type) as CodeOf<Name>
    this.problem = problem
    this.requestId = answered.headers["x-request-id"] ?? problem.instance?.replace(/^\/requests\//, "")
    this.retryAfterMs = retryAfterMs(answered)
  }
}

/** A problem of one of these names: asking for its `type` tells the rest of it. */
export type ProblemError<Name extends ProblemName = ProblemName> = Name extends ProblemName
  ? TropismProblem<Name>
  : never

/** No server answers there, or its answer broke off, as often as it was tried. */
export class TropismUnreachable extends Error {
  override readonly name = "TropismUnreachable"
}

/** What answers there is no Tropism, or one of another version. */
export class TropismUnreadable extends Error {
  override readonly name = "TropismUnreadable"
  readonly status: number
  readonly requestId: string | undefined

  constructor(response: Answered, quoted: string) {
    super(`The answer (${response.status}) is not what a Tropism server says: ${quoted}`)
    this.status = response.status
    this.requestId = response.headers["x-request-id"]
  }
}

/** Whether an error is a problem that the server told, of this type where one is named. */
export const isProblem = <Name extends ProblemName = ProblemName>(
  error: unknown,
  type?: Name
): error is ProblemError<Name> =>
  error instanceof TropismProblem && (type === undefined || error.type === type)
