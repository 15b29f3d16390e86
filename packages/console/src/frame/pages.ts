/**
 * The pages that the navigation leads to: one table for the links, the jumps and the palette.
 *
 * What is wrong with the server is told at `/status`, because `/health` is an address of the API.
 */
import { commandKey } from "../keys/command-key.ts"

export interface PageEntry {
  readonly to:
    | "/"
    | "/runs"
    | "/graph"
    | "/agents"
    | "/reactions"
    | "/chains"
    | "/live"
    | "/chat"
    | "/status"
    | "/settings"
  readonly title: string
  /** The letter that goes there after `g`. */
  readonly letter: string
  /** Addresses below which the page is the present one too. */
  readonly below: ReadonlyArray<string>
}

export const pages: ReadonlyArray<PageEntry> = [
  { to: "/", title: "Inbox", letter: "i", below: ["/tasks"] },
  { to: "/runs", title: "Runs", letter: "r", below: ["/runs"] },
  { to: "/graph", title: "Graph", letter: "g", below: ["/graph", "/objects"] },
  { to: "/agents", title: "Agents", letter: "a", below: ["/agents"] },
  { to: "/reactions", title: "Reactions", letter: "e", below: ["/reactions"] },
  { to: "/chains", title: "Chains", letter: "c", below: ["/chains"] },
  { to: "/live", title: "Live", letter: "l", below: ["/live", "/events"] },
  { to: "/chat", title: "Chat", letter: "t", below: ["/chat"] },
  { to: "/status", title: "Health", letter: "h", below: ["/status"] },
  { to: "/settings", title: "Settings", letter: "s", below: ["/settings"] }
]

/** The page that an address belongs to. */
export const pageAt = (path: string): PageEntry | undefined =>
  pages.find(
    ({ to, below }) => to === path || below.some((place) => path === place || path.startsWith(`${place}/`))
  )

/** The page's own keys, as the key map tells them. */
export const consoleKeys = {
  title: "Everywhere",
  keys: [
    { shown: [commandKey, "K"], means: "Go to anything (also /)" },
    { shown: ["?"], means: "Show keyboard shortcuts" },
    ...pages.map(({ title, letter }) => ({ shown: ["G", letter.toUpperCase()], means: `Go to ${title}` }))
  ]
}
