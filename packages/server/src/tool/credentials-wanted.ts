/**
 * What is told where a server wants to know who is calling.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Either somebody signs in, or a definition names the secret that its headers
 * carry. The answer that such a server gives becomes the sentence that says which.
 */
import { extractWWWAuthenticateParams } from "@modelcontextprotocol/client"
import { secretPrefix, signedOutText } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { lineOf } from "./foreign-fault.ts"

/** The scopes that a server names which refuses a token for having too few. */
export const wantedScopesIn = (response: Response): string | undefined => {
  const { error, scope } = extractWWWAuthenticateParams(response)
  return error === "insufficient_scope" ? scope : undefined
}

/** The same answer; where credentials are wanted, its body says who may mend that. */
export const sayWhoMayMend = (
  response: Response,
  sent: Readonly<Record<string, string>>,
  isSignedIn: boolean
): Response | Promise<Response> => {
  const { status } = response
  if (status !== 401 && status !== 403) return response
  const { errorDescription, resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
  const hasSent = Object.keys(sent).some((name) => /auth|key|token|cookie|secret/i.test(name))
  const isBearer = /^\s*bearer\b/i.test(response.headers.get("www-authenticate") ?? "")
  const isSignInWanted = status === 401 && !hasSent && !isSignedIn && isBearer
  /** It says where one signs in; a key that somebody else gives out is not what it wants. */
  const isOAuth = isSignInWanted && resourceMetadataUrl !== undefined
  const lacksScope = isSignedIn && status === 403 && scope !== undefined
  const wants = isSignedIn
    ? "does not take the token of the sign-in"
    : hasSent
      ? `does not take the credentials in the headers ${Object.keys(sent).join(", ")}`
      : isOAuth
        ? "wants to know who calls"
        : "wants credentials, and the definition's headers hold none"
  const words = [
    ...(isSignInWanted ? [`${signedOutText} first.`] : lacksScope ? [`${signedOutText} again.`] : []),
    `The server answered ${status}: it ${wants}.`,
    ...(errorDescription === undefined ? [] : [`It says: ${beginningOf(lineOf(errorDescription), 200)}.`]),
    ...(scope === undefined ? [] : [`It wants the scope ${beginningOf(lineOf(scope), 100)}.`]),
    ...(resourceMetadataUrl === undefined
      ? []
      : [`Who gives ${isOAuth ? "leave" : "them"} is told at ${resourceMetadataUrl.href.slice(0, 200)}.`]),
    ...(isSignedIn || isOAuth ? [] : [howToName])
  ]
  const headers = new Headers({ "content-type": "text/plain" })
  return Promise.resolve(response.body?.cancel()).then(
    () => new Response(words.join(" "), { status, headers })
  )
}

const howToName = `An admin names them in the definition, as {"Authorization": {"secret": "${secretPrefix}…", "prefix": "Bearer "}}; the operator sets that variable`
