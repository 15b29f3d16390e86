/**
 * Holds what the doors answer in stories against the two documents that the server tells of itself.
 *
 * The documents are made from the contract in this program, once for all files of
 * a thread, and each schema is compiled when the first answer needs it.
 */
import { Api } from "@tropism/api/api"
import { OpenAiApi } from "@tropism/api/openai-api"
import { OpenApi } from "effect/http-api"
import { type Answered, type Documented, documentedBy } from "./documented.ts"

let made: ReadonlyArray<Documented> | undefined

const documents = () =>
  (made ??= [Api, OpenAiApi].map((api) => documentedBy(OpenApi.fromApi(api as typeof Api))))

/** What of an answer its operation's document does not tell; undefined where it tells all, or knows no such operation. */
export const contractFault = (method: string, path: string, answer: Answered): string | undefined => {
  for (const document of documents()) {
    const operation = document.find(method, path)
    if (operation === undefined) continue
    const fault = document.faultOf(operation, answer)
    return fault === undefined ? undefined : `${operation.method} ${operation.path}: ${fault}`
  }
  return undefined
}
