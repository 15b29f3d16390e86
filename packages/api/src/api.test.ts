/**
 * The contract says of everything in it what it is: no operation, group, parameter or answer without words.
 */
import { assert, describe, it } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { Api } from "./api.ts"
import { OpenAiApi } from "./openai-api.ts"
import { operationWords } from "./operation-words.ts"
import { problemPages } from "./problem-pages.ts"

interface Said {
  readonly operationId: string
  readonly summary?: string
  readonly tags: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly description?: string
  }>
  readonly responses: Readonly<
    Record<string, { readonly description?: string; readonly content?: Readonly<Record<string, unknown>> }>
  >
}

const contracts = { api: OpenApi.fromApi(Api), openai: OpenApi.fromApi(OpenAiApi) } as const

const operationsOf = (contract: OpenApi.OpenAPISpec): ReadonlyArray<Said> =>
  Object.values(contract.paths).flatMap((methods) => Object.values(methods) as ReadonlyArray<Said>)

/** One sentence: it begins with a capital, ends with a full stop, and has no other. */
const isSentence = (text: string | undefined): boolean =>
  text !== undefined && /^\p{Lu}[^.]{3,110}\.$/u.test(text)

const statuses = new Set(Object.values(problemPages).map(({ status }) => String(status)))

describe.each(Object.entries(contracts))("The contract of %s", (name, contract) => {
  const operations = operationsOf(contract)

  it("says each operation by a name of its own and in one sentence of its own", () => {
    const ids = operations.map(({ operationId }) => operationId)
    assert.strictEqual(new Set(ids).size, ids.length)
    const unfit = operations.filter(({ summary }) => !isSentence(summary))
    assert.deepStrictEqual(
      unfit.map(({ operationId }) => operationId),
      []
    )
    const sentences = operations.map(({ summary }) => summary)
    assert.deepStrictEqual(
      sentences.filter((one, index) => sentences.indexOf(one) < index),
      []
    )
  })

  it("says null once in each field that may be null", () => {
    assert.notMatch(JSON.stringify(contract), /\{"type":"null"\},\{"type":"null"\}/)
  })

  it("says what each group is about", () => {
    const about = new Map(contract.tags.map(({ description, name }) => [name, description]))
    const used = [...new Set(operations.flatMap(({ tags }) => tags))]
    assert.isAbove(used.length, 0)
    assert.deepStrictEqual(
      used.filter((tag) => (about.get(tag) ?? "") === ""),
      []
    )
  })

  it("says of each parameter of a query what it does", () => {
    const unsaid = operations.flatMap(({ operationId, parameters = [] }) =>
      parameters
        .filter((one) => one.in === "query" && (one.description ?? "").length < 5)
        .map((one) => `${operationId} ${one.name}`)
    )
    assert.deepStrictEqual(unsaid, [])
  })

  it("lists the problems of each operation, each as what it is", () => {
    const form = name === "api" ? "application/problem+json" : "application/json"
    const faults = operations.flatMap(({ operationId, responses }) => {
      const problems = Object.entries(responses).filter(([status]) => status >= "400")
      const unfit = problems.filter(
        ([status, { content, description = "" }]) =>
          description === "" || !(form in (content ?? {})) || (name === "api" && !statuses.has(status))
      )
      return problems.length === 0 ? [operationId] : unfit.map(([status]) => `${operationId} ${status}`)
    })
    assert.deepStrictEqual(faults, [])
  })
})

describe("The words of operations", () => {
  it("are of operations that there are", () => {
    const known = new Set(
      Object.values(contracts).flatMap((contract) =>
        operationsOf(contract).map(({ operationId }) => operationId)
      )
    )
    const words = Object.entries(operationWords).flatMap(([group, { operations }]) =>
      Object.keys(operations).map((operation) => `${group}.${operation}`)
    )
    assert.deepStrictEqual(
      words.filter((id) => !known.has(id)),
      []
    )
  })
})
