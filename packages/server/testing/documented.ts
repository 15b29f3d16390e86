/**
 * What the OpenAPI document says of an answer: is its status there, its content type, and does its body fit?
 *
 * The document is what everybody outside has to go by, so an answer that it does
 * not tell of is a fault of one of the two. Schemas are compiled when the first
 * answer needs them.
 */
import { Ajv } from "@modelcontextprotocol/server/validators/ajv"

/** Any JSON: a document, a schema, an answer. */
// oxlint-disable-next-line typescript/no-explicit-any -- a document has every shape
type Json = any

/** One operation of the document. */
export interface Operation {
  readonly method: string
  /** As the document writes it, with its parameters in braces. */
  readonly path: string
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly in: string; readonly schema: Json }>
  /** Content types that a body may have, with the schema of each; none where a request has no body. */
  readonly bodies: ReadonlyArray<readonly [contentType: string, schema: Json]>
}

/** What came back for a request. */
export interface Answered {
  readonly status: number
  readonly contentType: string | null
  /** Decoded where it is JSON, else text; null where there is none. */
  readonly body: unknown
}

export interface Documented {
  readonly document: Json
  readonly operations: ReadonlyArray<Operation>
  /** The operation that a request reaches. */
  readonly find: (method: string, path: string) => Operation | undefined
  /** What of an answer the document does not tell; undefined where it tells all. */
  readonly faultOf: (operation: Operation, answer: Answered) => string | undefined
}

/** Reads a document once. */
export const documentedBy = (document: Json): Documented => {
  const judge = new Ajv({ strict: false, validateSchema: false, validateFormats: false, logger: false })
  judge.addSchema({ $id: "document", ...document })
  const compiled = new Map<string, ReturnType<typeof judge.compile>>()
  const operations = operationsOf(document)
  const routes = operations.map((operation) => ({ operation, ...routeOf(operation.path) }))
  // An address with more words of its own goes before one that takes any word in their place.
  routes.sort((one, other) => one.open - other.open)
  return {
    document,
    operations,
    find: (method, path) => {
      const address = path.replace(/[?#].*$/s, "")
      return routes.find((route) => route.operation.method === method && route.pattern.test(address))
        ?.operation
    },
    faultOf: ({ method, path }, { body, contentType, status }) => {
      const told = document.paths[path][method.toLowerCase()].responses[String(status)]
      if (told === undefined) return `status ${status} is not in the document`
      const contents = Object.keys(told.content ?? {})
      if (contents.length === 0) return body === null ? undefined : "the document tells of no body"
      const found = contents.find((each) => essenceOf(each) === essenceOf(contentType ?? ""))
      if (found === undefined) return `content type ${contentType} is not ${contents.join(" or ")}`
      if (!essenceOf(found).endsWith("json")) return undefined
      if (typeof told.content[found].schema !== "object") return "the document has no schema for it"
      // Bytes, of which the document says no more.
      if (told.content[found].schema.format === "binary") return undefined
      const place = ["paths", path, method.toLowerCase(), "responses", String(status), "content", found]
      // Most operations are refused in the same words.
      const schema = JSON.stringify(told.content[found].schema)
      const fits =
        compiled.get(schema) ?? judge.compile({ $ref: `document#/${place.map(stepOf).join("/")}/schema` })
      compiled.set(schema, fits)
      // Of lines, each is one of the document's.
      const parts = essenceOf(found) === "application/x-ndjson" ? linesOf(body) : [body]
      if (parts.every((part) => fits(part))) return undefined
      const faults = (fits.errors ?? []).map(
        (error) => `${error.instancePath || "the body"} ${error.message}`
      )
      return [...new Set(faults)].slice(0, 8).join("; ")
    }
  }
}

const operationsOf = (document: Json): ReadonlyArray<Operation> =>
  Object.entries<Record<string, Json>>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      parameters: operation.parameters ?? [],
      bodies: Object.entries<Json>(operation.requestBody?.content ?? {}).map(([type, { schema }]) => [
        type,
        schema
      ])
    }))
  )

const routeOf = (path: string) => ({
  open: path.split("{").length,
  pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]+")}$`)
})

const linesOf = (body: unknown): ReadonlyArray<unknown> =>
  typeof body === "string"
    ? body
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    : body === null
      ? []
      : [body]

/** `application/json; charset=utf-8` is `application/json`. */
const essenceOf = (contentType: string): string => (contentType.split(";", 1)[0] ?? "").trim().toLowerCase()

/** One step of a JSON pointer that stands in an address. */
const stepOf = (step: string): string => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))
