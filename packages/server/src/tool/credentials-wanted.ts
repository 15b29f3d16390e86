/**
 * What is told where a server wants to know who is calling.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Nobody signs in here: a definition names the secret that its headers carry. So
 * the answer that such a server gives becomes the sentence that says who sets what.
 */
import { extractWWWAuthenticateParams } from "@modelcontextprotocol/client"
import { secretPrefix } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { lineOf } from "./foreign-fault.ts"

/** The same answer; where credentials are wanted, its body says who may mend that. */
export const sayWhoMayMend = (
  response: Response,
  sent: Readonly<Record<string, string>>
): Response | Promise<Response> => {
  const { status } = response
  if (status !== 401 && status !== 403) return response
  const { errorDescription, resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
  const hasSent = Object.keys(sent).some((name) => /auth|key|token|cookie|secret/i.test(name))
  const wants = hasSent
    ? `does not take the credentials in the headers ${Object.keys(sent).join(", ")}`
    : "wants credentials, and the definition's headers hold none"
  const words = [
    `The server answered ${status}: it ${wants}.`,
    ...(errorDescription === undefined ? [] : [`It says: ${beginningOf(lineOf(errorDescription), 200)}.`]),
    ...(scope === undefined ? [] : [`It wants the scope ${beginningOf(lineOf(scope), 100)}.`]),
    ...(resourceMetadataUrl === undefined
      ? []
      : [`Who gives them is told at ${resourceMetadataUrl.href.slice(0, 200)}.`]),
    `An admin names them in the definition, as {"Authorization": {"secret": "${secretPrefix}…", "prefix": "Bearer "}}; the operator sets that variable`
  ]
  const headers = new Headers({ "content-type": "text/plain" })
  return Promise.resolve(response.body?.cancel()).then(
    () => new Response(words.join(" "), { status, headers })
  )
}
