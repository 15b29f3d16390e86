/**
 * The operations of an OpenAPI document, as what is said of many of them at once sees them.
 */
export interface Parameter {
  readonly name: string
  readonly in?: string
  readonly description?: string
  readonly schema?: object
}

export interface Response {
  readonly description?: string
  readonly headers?: Readonly<Record<string, object>>
}

export interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly responses?: Readonly<Record<string, Response>>
}

/** An OpenAPI document as `OpenApi.Transform` hands it on. */
export type Specification = Readonly<Record<string, unknown>>

/** A document in which each operation is made anew. */
export const mapOperations = (
  specification: Specification,
  map: (operation: Operation, method: string, path: string) => Operation
): Record<string, unknown> => ({
  ...specification,
  paths: mapValues(specification["paths"] as Record<string, Record<string, Operation>>, (methods, path) =>
    mapValues(methods, (operation, method) => map(operation, method, path))
  )
})

export const mapValues = <A, B>(
  record: Readonly<Record<string, A>>,
  map: (value: A, key: string) => B
): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]))
