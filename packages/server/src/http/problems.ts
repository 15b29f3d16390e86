/** Maps the domain's refusals to problem documents. */
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "@tropism/api/problems"
import { findFault, type JsonFault, pointerStep } from "@tropism/domain/json"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Effect, type SchemaIssue } from "effect"
import { HttpEffect, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { DefinitionRefused } from "../agents/definition-checks.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import type { ImportRefused } from "../graph/import/imports.ts"
import type { InvalidLockfile } from "../graph/import/package-lock.ts"
import { httpLimits } from "../limits.ts"
import type { DecisionRefused } from "../review/decisions.ts"
import type { UndoRefused } from "../review/undo-plan.ts"
import type { TriggerRefused } from "../runs/admission.ts"
import type { AnswerRefused } from "../runs/questions.ts"

/** Fails with 404 when the value is missing. */
export const orNotFound =
  (what: string) =>
  <A, E, R>(effect: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E | NotFound, R> =>
    Effect.flatMap(effect, (found) =>
      found === undefined
        ? Effect.fail(new NotFound({ detail: `There is no such ${what}` }))
        : Effect.succeed(found)
    )

export const invalid = (
  pointer: string,
  message: string,
  reason?: NonNullable<InvalidInput["reason"]>
): InvalidInput =>
  new InvalidInput({
    detail: message,
    errors: [{ pointer, message }],
    ...(reason === undefined ? {} : { reason })
  })

/** Refuses text anywhere in a definition that the database cannot store, with its place. */
export const keepable = (definition: unknown): Effect.Effect<void, InvalidInput> => {
  const fault = findFault(definition)
  return fault ? Effect.fail(invalid(fault.pointer, fault.message)) : Effect.void
}

/** The problem for a refused change; `target` lists the pointers that the address, not the body, supplied. */
export const changeProblem = (refusal: ChangeRefused): Conflict | InvalidInput | NotFound => {
  switch (refusal.reason) {
    case "notFound":
      return refusal.pointer === "/objectId" || refusal.pointer === "/relationshipId"
        ? new NotFound({ detail: refusal.detail })
        : invalid(refusal.pointer ?? "", refusal.detail)
    case "invalid":
      return invalid(refusal.pointer ?? "", refusal.detail)
    case "backtest":
      return new Conflict({ reason: "notPermitted", detail: refusal.detail })
    default:
      return new Conflict({
        reason: refusal.reason,
        detail: refusal.detail,
        ...(refusal.existingId === undefined ? {} : { existingId: refusal.existingId })
      })
  }
}

/** 429, with Retry-After. */
export const tooMany = Effect.fnUntraced(function* (
  reason: TooManyRequests["reason"],
  detail: string,
  retryAfterSeconds: number
) {
  yield* HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", String(retryAfterSeconds)))
  )
  return yield* new TooManyRequests({ reason, detail, retryAfterSeconds })
})

export const triggerProblem = ({
  detail,
  reason
}: TriggerRefused): Effect.Effect<never, Conflict | TooManyRequests, HttpServerRequest.HttpServerRequest> =>
  reason === "pendingRuns"
    ? tooMany(reason, detail, httpLimits.pendingRetryAfterSeconds)
    : Effect.fail(
        new Conflict({
          reason: reason === "noReaction" || reason === "ofBacktest" ? "state" : reason,
          detail
        })
      )

export const definitionProblem = (refusal: DefinitionRefused): Conflict | InvalidInput =>
  refusal.reason === "invalid"
    ? invalid(refusal.pointer, refusal.detail)
    : new Conflict({ reason: refusal.reason, detail: refusal.detail })

export const decisionProblem = ({
  detail,
  met,
  reason
}: DecisionRefused): Conflict | Forbidden | InvalidInput => {
  switch (reason) {
    case "role":
      return new Forbidden({ detail })
    case "notEditable":
      return invalid("/suggestedChanges", detail)
    case "noSuchVersion":
      return invalid("/suggestedChanges/baseVersion", detail)
    case "expiresAt":
      return invalid("/expiresAt", detail)
    case "notAssignable":
    case "isQuestion":
    case "isTodo":
      return new Conflict({ reason: "state", detail })
    default:
      return new Conflict({ reason, detail, ...met })
  }
}

export const undoProblem = ({ detail, reason }: UndoRefused): Conflict | InvalidInput =>
  reason === "notInPlan" ? invalid("/leaveOut", detail) : new Conflict({ reason, detail })

/** The problem for a refused approval: by the decision, the undo or the graph. */
export const approvalProblem = (refusal: DecisionRefused | UndoRefused | ChangeRefused) => {
  switch (refusal._tag) {
    case "DecisionRefused":
      return decisionProblem(refusal)
    case "UndoRefused":
      return undoProblem(refusal)
    case "ChangeRefused":
      return changeProblem(refusal)
  }
}

export const answerProblem = ({ detail, reason }: AnswerRefused): Conflict | InvalidInput => {
  switch (reason) {
    case "which":
    case "unknown":
      return invalid("/taskId", detail)
    case "noOption":
    case "tooLong":
      return invalid("/answer", detail)
    default:
      return new Conflict({ reason: reason === "answered" ? "alreadyDecided" : "state", detail })
  }
}

/** The detail is the first fault; all known faults are listed. */
export const invalidLockfile = ({ message, faults, total }: InvalidLockfile): InvalidInput => {
  const [first = message] = message.split("\n", 1)
  return new InvalidInput({
    detail: total > 1 ? `${first}, and ${total - 1} more` : first,
    errors: faults
  })
}

/** The problem for an import that may not start or continue. */
export const importProblem = ({ reason, detail }: ImportRefused): Conflict | InvalidInput | NotFound => {
  switch (reason) {
    case "noImport":
      return new NotFound({ detail })
    case "invalid":
      return invalid("", detail)
    default:
      return new Conflict({ reason, detail })
  }
}

// Lists where a request violates the contract, and what it expects.
//
// Each fault has a JSON pointer into the body, or the parameter's name, with a pointer where the parameter is JSON. The text comes from the
// schema.

/** The problem for an invalid body. */
export const invalidBody = (issue: SchemaIssue.Issue): InvalidInput => unfit(schemaFaults(issue))

/** The problem for invalid parameters. */
export const invalidParameters = (issue: SchemaIssue.Issue): InvalidInput =>
  unfit(
    schemaFaults(
      issue,
      ([name = "", ...rest]) =>
        String(name) +
        (isPlace(rest) && !jsonParameters.has(name)
          ? ""
          : rest.map((step) => pointerStep(String(step))).join(""))
    )
  )

/** Parameters that are JSON: a place inside one is meaningful to its sender. */
const jsonParameters: ReadonlySet<PropertyKey> = new Set(["where"])

/** Whether a place is inside one of several comma-separated values; to the sender these are one parameter. */
const isPlace = ([index, ...more]: ReadonlyArray<PropertyKey>): boolean =>
  typeof index === "number" && more.length === 0

const unfit = (errors: ReadonlyArray<JsonFault>): InvalidInput => {
  const [first] = errors
  const place = first?.pointer ? first.pointer : "The body"
  return new InvalidInput({
    detail: first ? `${place}: ${first.message}` : "The request does not fit the contract",
    errors
  })
}
