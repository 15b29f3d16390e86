/**
 * Puts into a contract what is said of its groups, operations and parameters.
 */
import { mapOperations, type Operation, type Parameter, type Specification } from "./operations.ts"
import { operationWords } from "./operation-words.ts"

interface Tag {
  readonly name: string
  readonly description?: string
}

/** Says each tag and each operation of a specification in its one sentence, and of each parameter what its schema says. */
export const sayOperations = (specification: Specification): Record<string, unknown> => ({
  ...mapOperations(withOneNull(specification), said),
  tags: ((specification["tags"] ?? []) as ReadonlyArray<Tag>).map((tag) => {
    const about = operationWords[tag.name]?.about
    return about === undefined ? tag : { ...tag, description: about }
  })
})

/** An optional field that may be null is written as null twice. */
const withOneNull = <A>(value: A): A => {
  if (Array.isArray(value)) return value.map(withOneNull) as A
  if (typeof value !== "object" || value === null) return value
  const fields = Object.entries(value).map(([key, field]) => [
    key,
    key === "anyOf" && Array.isArray(field) ? withoutRepeatedNull(field) : withOneNull(field)
  ])
  return Object.fromEntries(fields) as A
}

const withoutRepeatedNull = (parts: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const firstNull = parts.findIndex(isNull)
  return parts.filter((part, index) => !isNull(part) || index === firstNull).map(withOneNull)
}

const isNull = (part: unknown): boolean => JSON.stringify(part) === '{"type":"null"}'

const said = (operation: Operation): Operation => {
  const [group = "", name = ""] = (operation.operationId ?? "").split(".")
  const summary = operationWords[group]?.operations[name]
  const { parameters = [] } = operation
  return {
    ...operation,
    ...(summary === undefined ? {} : { summary }),
    ...(parameters.length === 0 ? {} : { parameters: parameters.map(described) })
  }
}

/** A parameter's words stand beside its schema, where a page of the contract shows them. */
const described = (parameter: Parameter): Parameter => {
  const { allOf = [], description } = (parameter.schema ?? {}) as Described
  const words = parameter.description ?? description ?? allOf.find((one) => one.description)?.description
  return words === undefined ? parameter : { ...parameter, description: words }
}

interface Described {
  readonly description?: string
  readonly allOf?: ReadonlyArray<{ readonly description?: string }>
}
