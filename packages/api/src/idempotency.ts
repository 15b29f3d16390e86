/**
 * The header under which a request that is sent again has one effect.
 *
 * Every POST takes it but those that have a name of their own for the same
 * thing. It is said of all of them in one place, so that a new one has it, too.
 */
import { Schema } from "effect"
import { mapOperations, type Operation, type Specification } from "./operations.ts"

/** A key is the caller's own choice, best a new UUID for each thing that is to happen. */
export const RequestKey = Schema.String.check(
  Schema.isPattern(/^[\x21-\x7e]{1,255}$/, {
    message: "A key has 1 to 255 visible ASCII characters and no blanks"
  })
)

/** The header of an endpoint that reads it by itself. */
export const IdempotencyKey = { "idempotency-key": Schema.optional(RequestKey) }

/** The header that says of an answer that its work was done before. */
export const replayedHeader = "idempotency-replayed"

/** The operations that take no key, each with what it has instead. */
export const ownNames: Readonly<Record<string, string>> = {
  "dumps.restoreDump": "the new project's `id`",
  "transfer.import": "the import's `id` and `resume`",
  "deliveries.deliver": "the header `webhook-id`"
}

/** Says the header of every POST of a specification. */
export const sayKeys = (specification: Specification): Record<string, unknown> =>
  mapOperations(specification, (operation, method) => (method === "post" ? keyed(operation) : operation))

const keyed = (operation: Operation): Operation => {
  const parameters = (operation.parameters ?? []).filter(({ name }) => name !== "idempotency-key")
  return (operation.operationId ?? "") in ownNames
    ? operation
    : { ...operation, parameters: [...parameters, parameter] }
}

const parameter = {
  name: "idempotency-key",
  in: "header",
  required: false,
  description:
    "A name of your own for this request. Sent again under the same key, with the same token, or any JWT of the same person, and at the same address, it has no second effect: for 30 days the first answer is told again, with the header `idempotency-replayed: true`. Another body under the same key is 422; while the first is at work a repeat waits for it, and is told 409 with `Retry-After` when that takes too long. A refusal is not kept.",
  schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" }
}
