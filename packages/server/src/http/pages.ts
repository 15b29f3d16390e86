/** Serves what is not the API: the console's files, the contract, the problem pages, and 404. */
import { Api } from "@tropism/api/api"
import type { Principal } from "@tropism/api/authorization"
import { problemPages, type ProblemPage } from "@tropism/api/problem-pages"
import { MethodNotAllowed, NotFound, Unauthorized, ForeignPage } from "@tropism/api/problems"
import type { UserId } from "@tropism/domain/ids"
import { Effect, Layer, Redacted } from "effect"
import {
  HttpRouter,
  HttpServerError,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse,
  HttpStaticServer
} from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { Database } from "../database/database.ts"
import { clientMetadata } from "../tools/external-mcp/oauth-protocol.ts"
import { ServerRegistry } from "../tools/external-mcp/registry.ts"
import { type Pending, clientDocumentAt, type Done, SignIns } from "../tools/external-mcp/sign-ins.ts"
import { bearerOf, sessionOf, signedIn, signedOut } from "./authentication.ts"
import { makeMethodsAt, findStranger, originOf, Standing, judgePage } from "./origins.ts"
import { Tokens } from "./tokens.ts"

const problem = (found: MethodNotAllowed | NotFound | Unauthorized) => HttpServerRespondable.toResponse(found)

const nothing = problem(new NotFound({ detail: "There is nothing at this address" }))

/** The addresses outside the API. */
const methodsAt = makeMethodsAt({
  "/docs": ["GET"],
  "/openapi.json": ["GET"],
  "/problems": ["GET"],
  "/problems/:name": ["GET"],
  "/login": ["GET", "POST"],
  "/logout": ["POST"],
  "/oauth/callback": ["GET", "POST"],
  "/oauth/client.json": ["GET"]
})

/** The Allow header of an existing address. */
const allowing = Effect.fnUntraced(function* (method: string, methods: ReadonlyArray<string>) {
  const allow = methods.join(", ")
  const answer =
    method === "OPTIONS"
      ? HttpServerResponse.empty({ status: 204 })
      : yield* problem(
          new MethodNotAllowed({ detail: `${method} cannot be asked of this address, but ${allow}` })
        )
  return HttpServerResponse.setHeader(answer, "allow", allow)
})

type Files = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  HttpServerError.HttpServerError,
  HttpServerRequest.HttpServerRequest
>

/**
 * Answers every address that has no other route.
 *
 * A browser that navigates gets the console, even where the address cannot be a file's: the console explains the error. Without a token a
 * caller may only ask for files: that a file is missing is public, the API's addresses are not.
 */
const nothingHere = (page: Files | undefined) =>
  Layer.unwrap(
    Effect.map(Tokens, (tokens) => {
      const answer = Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const isFile = /^(?:GET|HEAD)$/.test(request.method) && !/^\/api(?:[/?]|$)/.test(request.url)
        if (isFile && page !== undefined && isForPeople(request))
          return yield* Effect.catch(page, () => nothing)
        const secrets = [bearerOf(request), sessionOf(request)]
        const principals = isFile ? [] : yield* Effect.forEach(secrets, tokens.find)
        if (!isFile && principals.every((principal) => principal === undefined))
          return yield* problem(new Unauthorized({ detail: "Send a valid token: Authorization: Bearer …" }))
        const methods = methodsAt(request.url)
        // An allowed method without a match means that an id in the path is ill-formed.
        const isKnown =
          methods.length > 0 && (request.method === "OPTIONS" || !methods.includes(request.method))
        return yield* isKnown && !isFile ? allowing(request.method, methods) : nothing
      })
      return Layer.mergeAll(
        HttpRouter.middleware(
          (httpEffect) =>
            Effect.catch(httpEffect, (error) =>
              HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"
                ? answer
                : Effect.fail(error)
            ),
          { global: true }
        ),
        // Otherwise the console, which answers every address, would answer for the API, too.
        HttpRouter.add("GET", "/api/*", answer)
      )
    })
  )

const isForPeople = (request: HttpServerRequest.HttpServerRequest): boolean =>
  request.headers["accept"]?.includes("text/html") === true

/** The console's built files in a folder. A name that no file can have is a missing file. */
const consoleFiles = (folder: string) =>
  Layer.unwrap(
    Effect.map(HttpStaticServer.make({ root: folder, spa: true, cacheControl: "no-cache" }), (files) =>
      Layer.mergeAll(nothingHere(firstOf(files)), HttpRouter.add("GET", "/*", Effect.catch(files, missing)))
    )
  )

/** The page that answers the address of every screen. */
const firstOf = (files: Files): Files =>
  Effect.updateService(files, HttpServerRequest.HttpServerRequest, (request) =>
    request.modify({ url: "/index.html" })
  )

const missing = (error: HttpServerError.HttpServerError) => {
  const notFound = new HttpServerError.HttpServerError({
    reason: new HttpServerError.RouteNotFound({ request: error.request })
  })
  return error.reason._tag === "RouteNotFound"
    ? Effect.fail(notFound)
    : Effect.andThen(Effect.logWarning("A file could not be read", error), Effect.fail(notFound))
}

export const layerPages = (consoleFolder: string | undefined) =>
  Layer.mergeAll(
    layerSigningIn,
    layerToolSignIns,
    layerProblemPages,
    consoleFolder === undefined ? nothingHere(undefined) : consoleFiles(consoleFolder),
    HttpApiScalar.layer(Api, { path: "/docs", scalar: { withDefaultFonts: false } })
  )

// Pages at the `type` URLs of problems.
//
// A browser gets HTML, all others Markdown; no token is required.

const pages: ReadonlyMap<string, ProblemPage> = new Map(Object.entries(problemPages))

const respondWithPage = (title: string, markdown: string, html: string) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    (headers["accept"] ?? "").includes("text/html")
      ? HttpServerResponse.text(inPage(title, html), {
          contentType: "text/html; charset=utf-8",
          headers: varied
        })
      : HttpServerResponse.text(markdown, { contentType: "text/markdown; charset=utf-8", headers: varied })
  )

const varied = { vary: "accept" }

const inPage = (title: string, body: string) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>body{font:16px/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}dt{font-family:monospace}</style></head>
<body>
${body}
</body>
</html>
`

const heading = ({ status, title }: ProblemPage) => `${status} ${title}`

const lists = ({ members, reasons }: ProblemPage) =>
  [
    ["Members", Object.entries(members)],
    ["Reasons", Object.entries(reasons)]
  ].filter((list): list is [string, Array<[string, string]>] => (list[1]?.length ?? 0) > 0)

const asMarkdown = (type: string, page: ProblemPage): string =>
  [
    `# ${heading(page)}`,
    `Type: \`${type}\``,
    page.meaning,
    ...lists(page).map(([name, entries]) =>
      [`## ${name}`, "", ...entries.map(([word, sentence]) => `- \`${word}\`: ${sentence}`)].join("\n")
    ),
    "## What to do",
    page.remedy
  ].join("\n\n") + "\n"

/** Code is the only markup in the texts of the pages. */
const inHtml = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>")

const asHtml = (type: string, page: ProblemPage): string =>
  [
    `<h1>${inHtml(heading(page))}</h1>`,
    `<p>Type: <code>${type}</code></p>`,
    `<p>${inHtml(page.meaning)}</p>`,
    ...lists(page).map(([name, entries]) =>
      [
        `<h2>${name}</h2><dl>`,
        ...entries.map(([word, sentence]) => `<dt>${word}</dt><dd>${inHtml(sentence)}</dd>`),
        "</dl>"
      ].join("\n")
    ),
    `<h2>What to do</h2><p>${inHtml(page.remedy)}</p>`,
    `<p><a href="/problems">All problems</a></p>`
  ].join("\n")

const all = respondWithPage(
  "Problems",
  `# Problems\n\n${[...pages].map(([type, page]) => `- [${heading(page)}](${type})`).join("\n")}\n`,
  `<h1>Problems</h1>\n<ul>\n${[...pages].map(([type, page]) => `<li><a href="${type}">${inHtml(heading(page))}</a></li>`).join("\n")}\n</ul>`
)

const one = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const type = url.replace(/[?#].*$/s, "")
  const page = pages.get(type)
  return yield* page === undefined
    ? HttpServerRespondable.toResponse(new NotFound({ detail: "There is no such problem" }))
    : respondWithPage(heading(page), asMarkdown(type, page), asHtml(type, page))
})

const layerProblemPages = Layer.mergeAll(
  HttpRouter.add("GET", "/problems", all),
  HttpRouter.add("GET", "/problems/:name", one)
)

// Confirmation pages between a link and a sign-in, for a browser without the console.
//
// They run no script, cannot be framed, and send other sites no referrer: their address contains a code.

/** Asks whether to sign this browser in as a user; the address with the code stays the same. */
const askingPage = (user: UserId, present: UserId | undefined) =>
  page(
    200,
    `Sign in as ${user}?`,
    `${
      present === undefined || present === user
        ? ""
        : `<p>This browser is signed in as <b>${escaped(present)}</b>, who would be signed out here.</p>\n`
    }<p>This link signs this browser in as <b>${escaped(user)}</b>. Go on only if you asked for it: whatever you do then is done under that name.</p>
<form method="post"><button>Sign in as ${escaped(user)}</button></form>
<p><a href="/">Leave things as they are</a></p>`
  )

/** Explains why a link signs nobody in. */
const refusedPage = (detail: string) =>
  page(401, "This link signs nobody in", `<p>${escaped(detail)}</p>\n<p><a href="/">To the console</a></p>`)

/** Asks whether this server may use a user's account at an MCP server; the address with the code stays the same. */
const askingToolPage = ({ askedBy, projectName, serverName }: Pending) =>
  page(
    200,
    `Let ${askedBy} use ${serverName}?`,
    `<p><b>${escaped(askedBy)}</b> asked to sign in to <b>${escaped(serverName)}</b> for the agents of the project <b>${escaped(projectName)}</b>. Go on only if that was you: those agents then use ${escaped(serverName)} under the account that you have just chosen.</p>
<form method="post"><button>Sign in to ${escaped(serverName)}</button></form>
<p><a href="/">Leave things as they are</a></p>`
  )

/** Confirms the sign-in to an MCP server. */
const toolSignedInPage = (serverName: string) =>
  page(
    200,
    `Signed in to ${serverName}`,
    `<p>Agents can use <b>${escaped(serverName)}</b> now. You may close this page.</p>\n<p><a href="/">To the console</a></p>`
  )

/** Explains why the sign-in to an MCP server failed. */
const toolRefusedPage = (detail: string) =>
  page(400, "Not signed in", `<p>${escaped(detail)}</p>\n<p><a href="/">To the console</a></p>`)

const page = (status: number, title: string, body: string) =>
  HttpServerResponse.text(
    `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title>
<style>body{font:16px/1.5 system-ui;max-width:32rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark;overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1rem}</style></head>
<body>
<h1>${escaped(title)}</h1>
${body}
</body>
</html>
`,
    { status, contentType: "text/html; charset=utf-8", headers: guarded }
  )

const guarded = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  // Our own form must send its Origin; `no-referrer` would make it "null".
  "referrer-policy": "same-origin",
  "x-frame-options": "DENY"
}

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

// The OAuth callback after a sign-in to an MCP server.
//
// An attacker who sends a person their link would connect that person's account to the attacker's agents. So a browser that is not signed
// in as the requester must confirm, and one that is signed in as another user is refused.

type Request = HttpServerRequest.HttpServerRequest

/** The principal of a browser or a program. */
const personOf = Effect.fnUntraced(function* (request: Request) {
  const tokens = yield* Tokens
  const found = yield* Effect.forEach([bearerOf(request), sessionOf(request)], tokens.find)
  return found.find((principal) => principal !== undefined)
})

const broughtBy = ({ url }: Request) => {
  const { searchParams } = new URL(url, "http://here")
  const text = (name: string) => searchParams.get(name) ?? undefined
  const [error, description] = [text("error"), text("error_description")]
  return {
    state: text("state") ?? "",
    brought: {
      code: error === undefined ? text("code") : undefined,
      iss: text("iss"),
      error: error === undefined || description === undefined ? error : `${error}, ${description}`
    }
  }
}

/** Redeems the state, and lists the tools of a server that has not been listed yet. */
const finish = Effect.fnUntraced(function* (request: Request, person: Principal | undefined) {
  const { brought, state } = broughtBy(request)
  const done = yield* Effect.result((yield* SignIns).finish(state, brought, person))
  if (done._tag === "Failure") return toolRefusedPage(done.failure.detail)
  yield* pinFirst(done.success)
  return toolSignedInPage(done.success.server.config.name)
})

/** Pins a server's tools after the first sign-in; an earlier pin stays. */
const pinFirst = Effect.fnUntraced(function* ({ askedBy, mayPin, server }: Done) {
  if (!mayPin || server.tools.length > 0 || !server.config.enabled) return
  const registry = yield* ServerRegistry
  const database = yield* Database
  yield* Effect.flatMap(registry.refresh(server, askedBy), (keeping) =>
    database.inProject(server.projectId, keeping)
  ).pipe(
    Effect.scoped,
    // Somebody else has pinned or changed the server meanwhile.
    Effect.catchTag("McpServerRefused", ({ detail }) =>
      Effect.logWarning("A server was signed in to, and its tools are not pinned", { detail })
    )
  )
})

/** The authorization server sends browsers here: `GET /oauth/callback?state=…&code=…`. */
const callback = HttpRouter.add(
  "GET",
  "/oauth/callback",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const person = yield* personOf(request)
    const { brought, state } = broughtBy(request)
    const pending = yield* (yield* SignIns).find(state)
    // HEAD, as mail programs send it, follows no link; a denied authorization needs no confirmation.
    const isGranted = brought.code !== undefined
    const isAsked =
      pending !== undefined && (request.method === "HEAD" || (person === undefined && isGranted))
    return isAsked ? askingToolPage(pending) : yield* finish(request, person)
  })
)

/** The submitted confirmation page. */
const signInAnswered = HttpRouter.add(
  "POST",
  "/oauth/callback",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgePage
    return yield* finish(request, yield* personOf(request))
  }).pipe(Effect.catchTag("ForeignPage", HttpServerRespondable.toResponse))
)

/** The OAuth client metadata, at the address that is the client id. */
const clientDocument = Layer.unwrap(
  Effect.map(Standing, (standing) =>
    HttpRouter.add(
      "GET",
      "/oauth/client.json",
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const stranger = findStranger(standing, { host: request.headers["host"] })
        if (stranger !== undefined)
          return yield* HttpServerRespondable.toResponse(new ForeignPage({ detail: stranger }))
        const origin = originOf(request)
        return HttpServerResponse.jsonUnsafe({
          client_id: clientDocumentAt(origin),
          ...clientMetadata(origin, `${origin}/oauth/callback`)
        })
      })
    )
  )
)

const layerToolSignIns = Layer.mergeAll(callback, signInAnswered, clientDocument)

// Sign-in and sign-out of a browser.
//
// An attacker who sends a person their own link would have that person work under the attacker's name. So a link that another site led to,
// or that would replace another user's session, asks first, and only our own page can confirm.

const codeOf = ({ url }: Request): Redacted.Redacted =>
  Redacted.make(new URL(url, "http://here").searchParams.get("code") ?? "")

const linkIsOver =
  "This login link was used already or is too old. Ask whoever gave it to you for another; the one that the server prints is new with each start. Or sign in with a token."

/** Exchanges the code for a session, once. */
const enter = Effect.fnUntraced(function* (request: Request) {
  const session = yield* (yield* Tokens).exchange(codeOf(request), request.headers["user-agent"])
  return session === undefined
    ? yield* overFor(request)
    : yield* signedIn(request, session, HttpServerResponse.redirect("/", { status: 303, headers: unseen }))
})

const overFor = ({ headers }: Request) =>
  (headers["accept"] ?? "").includes("text/html")
    ? Effect.succeed(refusedPage(linkIsOver))
    : HttpServerRespondable.toResponse(new Unauthorized({ detail: linkIsOver }))

/** The answer is not cached, and no later page receives the address with its code. */
const unseen = { "cache-control": "no-store", "referrer-policy": "no-referrer" }

/** Whether the browser states that another site's page led to this address. */
const isLedHere = ({ headers }: Request): boolean =>
  /^(?:cross-site|same-site)$/.test(headers["sec-fetch-site"] ?? "")

/** The one-time link that the server prints or an admin creates: `GET /login?code=…`. */
const loginLink = HttpRouter.add(
  "GET",
  "/login",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const tokens = yield* Tokens
    const user = yield* tokens.userOfCode(codeOf(request))
    if (user === undefined) return yield* overFor(request)
    const session = sessionOf(request)
    const present = Redacted.value(session) === "" ? undefined : yield* tokens.find(session)
    const isAnothers = present !== undefined && present.userId !== user
    // HEAD, as mail programs send it, follows no link.
    return request.method === "HEAD" || isAnothers || isLedHere(request)
      ? askingPage(user, present?.userId)
      : yield* enter(request)
  })
)

/** Signs in with a token in `Authorization: Bearer …`, which no other site's page can send, or with the submitted confirmation page. */
const login = HttpRouter.add(
  "POST",
  "/login",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (Redacted.value(codeOf(request)) !== "") {
      yield* judgePage
      return yield* enter(request)
    }
    const session = yield* (yield* Tokens).openSession(bearerOf(request), request.headers["user-agent"])
    return session
      ? yield* signedIn(request, session, HttpServerResponse.empty({ status: 204 }))
      : yield* HttpServerRespondable.toResponse(new Unauthorized({ detail: "This token is not valid" }))
  }).pipe(Effect.catchTag("ForeignPage", HttpServerRespondable.toResponse))
)

const logout = HttpRouter.add(
  "POST",
  "/logout",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgePage
    yield* (yield* Tokens).endSession(sessionOf(request))
    return yield* signedOut(request, HttpServerResponse.empty({ status: 204 }))
  }).pipe(Effect.catchTag("ForeignPage", HttpServerRespondable.toResponse))
)

const layerSigningIn = Layer.mergeAll(loginLink, login, logout)
