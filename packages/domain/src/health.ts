/**
 * How a project fares: one verdict, what it rests on, and one next step.
 *
 * Every finding belongs to one of three questions: whether events reach the
 * agents (flow), whether the agents do their work (execution), and whether what
 * they need is there (liveness).
 */
import { Schema } from "effect"
import { Finding, FindingState } from "./finding.ts"

export const HealthPart = Schema.Literals(["flow", "execution", "liveness"])
export type HealthPart = typeof HealthPart.Type

/** Where somebody goes to mend something: a thing by its id, or a part of the project. */
export const HealthSubject = Schema.Struct({
  type: Schema.Literals([
    "agent",
    "deadLetters",
    "mcpServer",
    "models",
    "killSwitch",
    "runs",
    "tasks",
    "server"
  ]),
  id: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String)
})
export type HealthSubject = typeof HealthSubject.Type

export const HealthFinding = Schema.Struct({
  ...Finding.fields,
  part: HealthPart,
  /** What somebody else said of it, an agent's last failure for one; null where there is nothing to quote. */
  said: Schema.NullOr(Schema.String),
  /** What to do, in a sentence; null where there is nothing to do. */
  remedy: Schema.NullOr(Schema.String),
  subject: Schema.NullOr(HealthSubject)
}).annotate({ identifier: "HealthFinding" })
export type HealthFinding = typeof HealthFinding.Type

export const ProjectHealth = Schema.Struct({
  /** The worst state of any finding. */
  state: FindingState,
  /** How the project fares, in a sentence. */
  verdict: Schema.String,
  /** What to do first: the finding whose remedy it is; null where all is well. */
  nextStep: Schema.NullOr(HealthFinding),
  /** What the verdict rests on, the worst first. */
  findings: Schema.Array(HealthFinding)
}).annotate({ identifier: "ProjectHealth" })
export type ProjectHealth = typeof ProjectHealth.Type

const gravity: Readonly<Record<FindingState, number>> = { fault: 0, warn: 1, ok: 2 }

/** The verdict that findings come to; of two that are as bad the first counts. */
export const verdictOf = (findings: ReadonlyArray<HealthFinding>): ProjectHealth => {
  const sorted = findings.toSorted((one, other) => gravity[one.state] - gravity[other.state])
  const wrong = sorted.filter(({ state }) => state !== "ok")
  const [first, ...others] = wrong
  if (first === undefined)
    return {
      state: "ok",
      verdict: "All is well: events reach the agents, runs go on, and nothing that they need is missing.",
      nextStep: null,
      findings: sorted
    }
  const rest =
    others.length === 0
      ? ""
      : ` ${others.length} more ${others.length === 1 ? "thing needs" : "things need"} a look.`
  return { state: first.state, verdict: `${first.detail}${rest}`, nextStep: first, findings: sorted }
}
