/**
 * Says where a request does not fit the contract, and what would.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A fault is placed by a JSON pointer into the body or by the name of the
 * parameter, and a pointer into it where it holds JSON; what it says comes from the schema.
 */
import { InvalidInput } from "@tropism/api/problems"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { type JsonFault, pointerStep } from "@tropism/domain/json"
import type { SchemaIssue } from "effect"

/** A body that does not fit. */
export const unfitBody = (issue: SchemaIssue.Issue): InvalidInput => unfit(schemaFaults(issue))

/** Parameters that do not fit. */
export const unfitParameters = (issue: SchemaIssue.Issue): InvalidInput =>
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

/** Parameters that are JSON: a place in one of them is a place that its sender has written. */
const jsonParameters: ReadonlySet<PropertyKey> = new Set(["where"])

/** One of several values that are parted by commas: to whoever sent them they are one parameter. */
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
