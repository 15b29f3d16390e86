/**
 * The pages that stand between a link and what it lets in, for a browser without the console.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * They run no script and stand in no frame, and what they tell of another site
 * about themselves is nothing: their address has a code.
 */
import type { UserId } from "@tropism/domain/ids"
import { HttpServerResponse } from "effect/http"
import type { Pending } from "../tool/sign-ins.ts"

/** Asks whether this browser is to be signed in as a user; the address stays the one that has the code. */
export const askingPage = (user: UserId, present: UserId | undefined) =>
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

/** Says why a link signs nobody in. */
export const refusedPage = (detail: string) =>
  page(401, "This link signs nobody in", `<p>${escaped(detail)}</p>\n<p><a href="/">To the console</a></p>`)

/** Asks whether this server may use another one under somebody's account there; the address stays the one that has the code. */
export const askingToolPage = ({ askedBy, projectName, serverName }: Pending) =>
  page(
    200,
    `Let ${askedBy} use ${serverName}?`,
    `<p><b>${escaped(askedBy)}</b> asked to sign in to <b>${escaped(serverName)}</b> for the agents of the project <b>${escaped(projectName)}</b>. Go on only if that was you: those agents then use ${escaped(serverName)} under the account that you have just chosen.</p>
<form method="post"><button>Sign in to ${escaped(serverName)}</button></form>
<p><a href="/">Leave things as they are</a></p>`
  )

/** Says that a server is signed in to. */
export const toolSignedInPage = (serverName: string) =>
  page(
    200,
    `Signed in to ${serverName}`,
    `<p>Agents can use <b>${escaped(serverName)}</b> now. You may close this page.</p>\n<p><a href="/">To the console</a></p>`
  )

/** Says why nobody is signed in to a server. */
export const toolRefusedPage = (detail: string) =>
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
  // Our own form is to say where it comes from; `no-referrer` would have it say "null".
  "referrer-policy": "same-origin",
  "x-frame-options": "DENY"
}

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
