/**
 * Where each call of the contract goes and in which form its answer comes, read off the contract itself.
 *
 * It is the one place where the plain client meets the contract's value, so
 * that all else of it can do without the contract's schemas.
 */
import { Api } from "@tropism/api/api"
import { OpenApi } from "effect/http-api"

/** `page`: items and a cursor; `lines`: JSON line by line; `bytes`, `text`; `value`: JSON or nothing. */
export type AnswerForm = "value" | "page" | "lines" | "bytes" | "text"

export interface EndpointPlace {
  /** Group and name: `tasks.approve`. */
  readonly call: string
  readonly method: string
  /** With its ids in braces: `/api/projects/{projectId}/tasks/{taskId}`. */
  readonly path: string
  /** Whether it has a body. */
  readonly sends: boolean
  /** Whether it has a query. */
  readonly asks: boolean
  readonly form: AnswerForm
}

/** What is not for callers with a token: deliveries are signed by whoever sends them. */
const leftOut = "deliveries."

const formOf = (operation: OpenApi.OpenAPISpecOperation): AnswerForm => {
  const [, success] =
    Object.entries(operation.responses).find(([status, { content }]) => status.startsWith("2") && content) ??
    []
  for (const [type, { schema }] of Object.entries(success?.content ?? {})) {
    if (type.includes("ndjson")) return "lines"
    if (type.includes("octet-stream")) return "bytes"
    if (type.startsWith("text/plain")) return "text"
    if (JSON.stringify(schema).includes('"required":["items","nextCursor"]')) return "page"
  }
  return "value"
}

/** Every call of the contract. */
export const endpoints: ReadonlyArray<EndpointPlace> = Object.entries(OpenApi.fromApi(Api).paths).flatMap(
  ([path, operations]) =>
    (["get", "post", "put", "patch", "delete"] as const).flatMap((method) => {
      const operation = operations[method]
      if (operation === undefined || operation.operationId.startsWith(leftOut)) return []
      return [
        {
          call: operation.operationId,
          method: method.toUpperCase(),
          path,
          sends: operation.requestBody !== undefined,
          asks: operation.parameters.some((parameter) => parameter.in === "query"),
          form: formOf(operation)
        }
      ]
    })
)
