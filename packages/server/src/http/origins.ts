/**
 * Which names and pages may stand at the doors for programs: a browser is not to be used against its own machine.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A page elsewhere can give its own name the address of this server (DNS
 * rebinding) and then speak to it as to itself. So the name by which the door is
 * called must be one that we know to be ours, and a page that calls must be ours,
 * of this machine, or named by the operator in `TROPISM_ALLOWED_ORIGINS`.
 */

import { beginningOf } from "@tropism/domain/text-beginning"
import { Context } from "effect"
import type { HttpServerRequest } from "effect/http"

/** What the operator says of where this server stands. */
export class Standing extends Context.Service<
  Standing,
  {
    /** The address at which the server listens. */
    readonly host: string
    /** Origins of pages that may call, such as `https://tropism.example`; their hosts are names of ours, too. */
    readonly allowedOrigins: ReadonlyArray<string>
  }
>()("@tropism/server/http/Standing") {}

/** Why a request may not come in by its Host and Origin; undefined when it may. */
export const findStranger = (
  { allowedOrigins, host }: Standing["Service"],
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined }
): string | undefined => {
  const called = URL.parse(`http://${headers.host ?? ""}`)?.hostname
  const isKnown =
    called !== undefined &&
    (isLocal(called) ||
      called === hostOf(host) ||
      allowedOrigins.some((origin) => URL.parse(origin)?.hostname === called) ||
      // A name can be made to mean another address; an address cannot. Whoever listens everywhere has many.
      (!isLocal(hostOf(host)) && isAddress(called)))
  if (!isKnown)
    return `This server does not know itself as ${told(headers.host)}: add the address to TROPISM_ALLOWED_ORIGINS`
  const { origin } = headers
  if (origin === undefined) return undefined
  const page = URL.parse(origin)
  const isOurs = page !== null && (page.host === headers.host?.toLowerCase() || isLocal(page.hostname))
  return isOurs || (page !== null && allowedOrigins.includes(page.origin))
    ? undefined
    : `Pages of ${told(origin)} may not call this server: add it to TROPISM_ALLOWED_ORIGINS`
}

/** The origins of a comma-separated list, or the first entry that is none. */
export const readOrigins = (
  text: string
): { readonly origins: ReadonlyArray<string> } | { readonly unfit: string } => {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
  const unfit = entries.find((entry) => {
    const url = URL.parse(entry)
    return (
      url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search + url.hash !== ""
    )
  })
  return unfit === undefined ? { origins: entries.map((entry) => new URL(entry).origin) } : { unfit }
}

/** As a URL writes it: an address of version 6 in brackets. */
const hostOf = (host: string): string => (host.includes(":") ? `[${host}]` : host.toLowerCase())

/** Whether a name or an address means the machine on which it is said. */
export const isLocal = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host)

const isAddress = (host: string): boolean => host.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(host)

const told = (text: string | undefined): string => beginningOf(text ?? "nobody", 200)

/** Whether a client reached this server by https, as the proxy before it says; the first of a chain counts. */
export const isByHttps = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  /^\s*https\s*(?:,|$)/i.test(headers["x-forwarded-proto"] ?? "")

/** The address of this server as the client wrote it. */
export const originOf = (request: HttpServerRequest.HttpServerRequest): string =>
  `${isByHttps(request) ? "https" : "http"}://${request.headers["host"]}`
