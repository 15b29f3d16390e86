/**
 * Prints the contract as what the plain client needs of it: `npm run client-types` writes `contract.gen.ts`.
 *
 * That is an interface for each schema of the OpenAPI document, one with every
 * call, the problems by their names, and the table of where each call goes. What
 * a query's parameter is before it becomes text only the contract's value knows.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Api } from "@tropism/api/api"
import { problemPages } from "@tropism/api/problem-pages"
import type { AnswerForm, EndpointPlace } from "@tropism/client/plain/call-shapes"
import { TextDeltaEvent } from "@tropism/domain/context-event"
import { Schema, SchemaAST } from "effect"
import { OpenApi } from "effect/http-api"
import { describedBy, literal, member, nameOf, type JsonSchema, typeOf } from "./schema-types.ts"

/** The printed file. */
export const contractFile = join(import.meta.dirname, "../packages/client/src/plain/contract.gen.ts")

/** What is not for callers with a token: deliveries are signed by whoever sends them. */
const leftOut = "deliveries."

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
}

interface Placed {
  readonly place: EndpointPlace
  readonly operation: Operation
}

/** The contract in TypeScript. */
export const contractTypes = (): string => {
  const { components, paths } = OpenApi.fromApi(Api)
  const schemas = components.schemas as Readonly<Record<string, JsonSchema>>
  const placed = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations as Readonly<Record<string, Operation>>).flatMap(([method, operation]) =>
      operation.operationId.startsWith(leftOut)
        ? []
        : [{ operation, place: placeOf(method, path, operation) }]
    )
  )
  return (
    [
      "/** The contract as the plain client needs it, printed by `npm run client-types`: change that, or the contract. */",
      'import type { AskingOptions, Bytes, CallOptions, EndpointPlace, JsonObject, Listing } from "./call-shapes.ts"',
      ...Object.entries(schemas)
        .filter(([name]) => name !== unknownEvent)
        .map(([name, schema]) => declared(nameOf(name), isProblem(schema) ? wholeProblem(schema) : schema)),
      declared("TextDeltaEvent", Schema.toJsonSchemaDocument(TextDeltaEvent).schema as JsonSchema),
      printedProblems(schemas),
      printedCalls(placed),
      printedTable(placed.map(({ place }) => place))
    ].join("\n\n") + "\n"
  )
}

/** Its `type` is any text, so a union with it could not be told apart by `type`. */
const unknownEvent = "UnknownEventEncoded"

const declared = (name: string, schema: JsonSchema): string => {
  const told = schema.anyOf?.filter(({ $ref }) => !$ref?.endsWith(`/${unknownEvent}`))
  const type = typeOf(told ? { ...schema, anyOf: told } : schema)
  const head = describedBy(schema.description, "")
  return schema.properties
    ? `${head}export interface ${name} ${type}`
    : `${head}export type ${name} = ${type}`
}

const isProblem = (schema: JsonSchema): boolean =>
  String(schema.properties?.["type"]?.enum?.[0]).startsWith("/problems/")

/** The server always says these, though the contract could do without. */
const wholeProblem = (schema: JsonSchema): JsonSchema => ({
  ...schema,
  required: [...(schema.required ?? []), "status", "title"]
})

/** Every problem by the last part of its `type`; those that no operation names have what all have. */
const printedProblems = (schemas: Readonly<Record<string, JsonSchema>>): string => {
  const named = new Map(
    Object.entries(schemas)
      .filter(([, schema]) => isProblem(schema))
      .map(([name, schema]) => [String(schema.properties?.["type"]?.enum?.[0]), nameOf(name)])
  )
  const members = Object.entries(problemPages).map(([type, page]) => {
    const other = {
      properties: { type: one(type), status: one(page.status), title: text, detail: text, instance: text }
    }
    const schema = { type: "object", ...other, required: ["type", "status", "title"] }
    return member(type.replace("/problems/", ""), named.get(type) ?? typeOf(schema, "  "), { required: true })
  })
  return `/** What the server refuses with, by the name of the problem. */\nexport interface Problems {\n${members.join("\n")}\n}`
}

const text: JsonSchema = { type: "string" }
const one = (value: string | number): JsonSchema => ({ enum: [value] })

const printedCalls = (placed: ReadonlyArray<Placed>): string => {
  const groups = Map.groupBy(placed, ({ place }) => place.call.split(".")[0] ?? "")
  const printed = [...groups].map(
    ([group, calls]) => `  readonly ${group}: {\n${calls.map(printedCall).join("\n")}\n  }`
  )
  return `/** Every call of the contract, grouped as there. */\nexport interface Calls {\n${printed.join("\n")}\n}`
}

const printedCall = ({ operation, place }: Placed): string => {
  const ids = [...place.path.matchAll(/\{(\w+)\}/g)].flatMap(([, name = ""]) =>
    name === "projectId" ? [] : [name]
  )
  const asked = printedQuery(operation)
  const needsQuery = operation.parameters.some((each) => each.in === "query" && each.required)
  const query = asked && `query${needsQuery ? "" : "?"}: ${asked}`
  const options = asked && place.sends ? `AskingOptions<${asked}>` : "CallOptions"
  const said = [
    ...ids.map((id) => `${id}: string`),
    ...(place.sends ? [printedBody(operation)] : asked ? [query] : []),
    needsQuery && place.sends ? `options: ${options} & { readonly ${query} }` : `options?: ${options}`
  ]
  const [, name = ""] = place.call.split(".")
  const head = describedBy(operation.summary, "    ")
  return `${head}    readonly ${name}: (${said.join(", ")}) => ${printedAnswer(operation, place.form)}`
}

/** A body of which nothing is needed may be left out. */
const printedBody = ({ requestBody }: Operation): string => {
  const schema = requestBody?.content["application/json"]?.schema
  if (Object.keys(requestBody?.content ?? {}).some((type) => type.includes("octet-stream")))
    return "bytes: Bytes"
  const isOptional = [schema, ...(schema?.anyOf ?? [])].some(
    (form) => form?.type === "object" && (form.required ?? []).length === 0
  )
  return `body${isOptional ? "?" : ""}: ${typeOf(schema ?? {}, "    ")}`
}

const printedAnswer = ({ responses }: Operation, form: AnswerForm): string => {
  const answers = Object.entries(responses).flatMap(([status, { content }]) =>
    status.startsWith("2") ? [Object.entries(content ?? {})] : []
  )
  const contents = answers.flat()
  const of = (mark: string) =>
    [
      ...new Set(
        contents.flatMap(([type, { schema }]) => (type.includes(mark) ? [typeOf(schema, "    ")] : []))
      )
    ].join(" | ")
  if (form === "bytes") return "Promise<Uint8Array>"
  if (form === "text") return "Promise<string>"
  // A dump's lines are for the server that restores it.
  if (form === "lines") return `AsyncIterable<${of("ndjson") === "string" ? "unknown" : of("ndjson")}>`
  const nothing = answers.some(({ length }) => length === 0) ? "undefined" : ""
  if (form === "value") return `Promise<${[of("json"), nothing].filter((type) => type !== "").join(" | ")}>`
  const items = contents.flatMap(([, { schema }]) => schema.properties?.["items"]?.items ?? [])
  return `Listing<${items.map((item) => typeOf(item, "    ")).join(" | ")}>`
}

/** What may be asked, as it is before it becomes text. */
const printedQuery = ({ operationId, parameters }: Operation): string | undefined => {
  const [group = "", name = ""] = operationId.split(".")
  const known = queryTypes(group, name)
  const members = parameters
    .filter((parameter) => parameter.in === "query")
    .map((parameter) => {
      const own = known.get(parameter.name)
      if (own === undefined) throw new Error(`${operationId} has no ${parameter.name} in its value`)
      const isList = own === "string" && /commas/.test(parameter.description ?? "")
      const type = isList ? "string | ReadonlyArray<string>" : own
      return member(parameter.name, type, { required: parameter.required })
    })
  return members.length === 0 ? undefined : `{ ${members.map((each) => each.trim()).join("; ")} }`
}

const queryTypes = (group: string, name: string): ReadonlyMap<string, string> => {
  const groups: Readonly<
    Record<
      string,
      { readonly endpoints: Readonly<Record<string, { readonly query?: Schema.Top | undefined }>> }
    >
  > = Api.groups
  const query = groups[group]?.endpoints[name]?.query
  if (query === undefined) return new Map()
  const ast = SchemaAST.toType(query.ast)
  if (!SchemaAST.isObjects(ast)) throw new Error(`the query of ${group}.${name} is no struct`)
  return new Map(ast.propertySignatures.map((each) => [String(each.name), queryType(each.type)]))
}

const queryType = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isUnion(ast)) {
    const types = ast.types.filter((type) => !SchemaAST.isUndefined(type)).map(queryType)
    const words = [...new Set(types)].join(" | ")
    return words === '"true" | "false"' ? "boolean" : words
  }
  if (SchemaAST.isLiteral(ast)) return literal(ast.literal)
  if (SchemaAST.isNumber(ast)) return "number"
  if (SchemaAST.isString(ast)) return "string"
  if (!SchemaAST.isArrays(ast)) throw new Error(`a query with ${ast._tag} has no type yet`)
  const [element] = ast.rest
  if (element === undefined) throw new Error("a query with a tuple has no type yet")
  const schema = Schema.toJsonSchemaDocument(Schema.make(element))
  return `ReadonlyArray<${typeOf(schema.schema as JsonSchema)}>`
}

const formOf = ({ responses }: Operation): AnswerForm => {
  const [, success] =
    Object.entries(responses).find(([status, { content }]) => status.startsWith("2") && content) ?? []
  for (const [type, { schema }] of Object.entries(success?.content ?? {})) {
    if (type.includes("ndjson")) return "lines"
    if (type.includes("octet-stream")) return "bytes"
    if (type.startsWith("text/plain")) return "text"
    if (schema.properties?.["nextCursor"]) return "page"
  }
  return "value"
}

const placeOf = (method: string, path: string, operation: Operation): EndpointPlace => ({
  call: operation.operationId,
  method: method.toUpperCase(),
  path,
  sends: operation.requestBody !== undefined,
  asks: operation.parameters.some((parameter) => parameter.in === "query"),
  form: formOf(operation)
})

const printedTable = (places: ReadonlyArray<EndpointPlace>): string =>
  `/** Where each call goes. */\nexport const endpoints: ReadonlyArray<EndpointPlace> = [\n${places
    .map((place) => `  ${JSON.stringify(place)}`)
    .join(",\n")}\n]`

if (import.meta.main) writeFileSync(contractFile, contractTypes())
