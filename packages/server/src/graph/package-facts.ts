/**
 * What a lockfile's entry says of a package's origin and licence, made plain.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Nothing secret passes: addresses lose their passwords, tokens and queries
 * before anybody may read them in the graph. Every step is linear in the text,
 * which is somebody else's.
 */
import { isJsonObject } from "@tropism/domain/json"
import type { Schema } from "effect"

/** Where a package comes from. */
export type PackageSource = "root" | "workspace" | "registry" | "git" | "file" | "url"

export interface Origin {
  readonly path: string
  readonly resolved: string | undefined
  /** Under a `node_modules`, and not a folder of the project. */
  readonly isInstalled: boolean
  readonly hasWorkspaces: boolean
}

/** Says where a package comes from; an absent address is the registry's. */
export const sourceOf = ({ path, resolved, isInstalled, hasWorkspaces }: Origin): PackageSource => {
  if (path === "") return "root"
  if (!isInstalled) return hasWorkspaces && !isOutside(path) ? "workspace" : "file"
  if (resolved === undefined) return "registry"
  if (gitAddress.test(resolved) || (resolved.split("#", 1)[0] ?? "").endsWith(".git")) return "git"
  if (!/^https?:\/\//.test(resolved)) return "file"
  return isRegistryTarball(resolved) ? "registry" : "url"
}

/** Whether a folder lies outside the project. */
export const isOutside = (path: string): boolean => path === ".." || path.startsWith("../")

const gitAddress = /^(?:git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:)/

/** Registries serve `…/name/-/name-1.0.0.tgz`; GitHub's has a form of its own. */
const isRegistryTarball = (address: string): boolean => {
  const path = address.split(/[?#]/, 1)[0] ?? ""
  return (path.includes("/-/") && path.endsWith(".tgz")) || path.startsWith("https://npm.pkg.github.com/")
}

/** An address without password, token and query; any other text as it is. */
export const withoutSecrets = (address: string): string => {
  const start = address.indexOf("://")
  if (start === -1) return address
  const scheme = address.slice(0, start)
  const rest = address.slice(start + 3)
  const authorityEnd = firstOf(rest, "/?#")
  const authority = rest.slice(0, authorityEnd)
  const at = authority.lastIndexOf("@")
  // "git@" is how every key logs in over SSH; elsewhere the user may itself be a token.
  const user = scheme.endsWith("ssh") && at !== -1 ? `${authority.slice(0, at).split(":", 1)[0]}@` : ""
  const path = rest.slice(authorityEnd)
  const query = path.indexOf("?")
  const hash = path.indexOf("#")
  const kept =
    query === -1 || (hash !== -1 && hash < query)
      ? path
      : path.slice(0, query) + (hash === -1 ? "" : path.slice(hash))
  return `${scheme}://${user}${authority.slice(at + 1)}${kept}`
}

/** Where the first of some characters stands, or the text's length. */
const firstOf = (text: string, characters: string): number => {
  const places = [...characters].map((character) => text.indexOf(character)).filter((place) => place !== -1)
  return Math.min(text.length, ...places)
}

/** The licence as text: an SPDX expression, or what old packages wrote as `{type}` or a list of them. */
export const licenseOf = (license: Schema.Json | undefined): string | undefined => {
  const names = new Set(
    (Array.isArray(license) ? license : [license]).map(licenseName).filter((name) => name !== undefined)
  )
  return names.size > 1 ? `(${[...names].join(" OR ")})` : [...names][0]
}

const licenseName = (license: Schema.Json | undefined): string | undefined => {
  const candidates = isJsonObject(license) ? [license.type, license.name] : [license]
  return candidates.filter((name) => typeof name === "string").find((name) => name.trim() !== "")
}
