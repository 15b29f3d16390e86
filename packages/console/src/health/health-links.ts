/**
 * Where a person goes to mend what a finding is about.
 */
import type { HealthSubject } from "@tropism/domain/health"
import type { LinkProps } from "@tanstack/react-router"

export interface HealthLink {
  readonly to: LinkProps
  /** What stands on the link. */
  readonly words: string
}

/** Undefined where nothing on these pages mends it. */
export const linkOf = ({ type, id, name }: HealthSubject): HealthLink | undefined => {
  switch (type) {
    case "agent":
      return id === null
        ? { to: { to: "/agents", search: { enabled: "false" } }, words: "Open the agents" }
        : { to: { to: "/agents/$agentId", params: { agentId: id } }, words: `Open the agent ${name}` }
    case "deadLetters":
      return id === null
        ? undefined
        : {
            to: { to: "/reactions/$agentId", params: { agentId: id }, search: { tab: "dead" } },
            words: `Open the dead letters of ${name}`
          }
    case "mcpServer":
      return id === null
        ? undefined
        : {
            to: { to: "/settings", search: { tab: "servers", server: id } },
            words: `Open the MCP server ${name}`
          }
    case "models":
      return { to: { to: "/settings", search: { tab: "models" } }, words: "Open the models" }
    case "killSwitch":
      return { to: { to: "/settings", search: { tab: "project" } }, words: "Open the kill switch" }
    case "runs":
      return { to: { to: "/runs" }, words: "Open the runs" }
    case "tasks":
      return { to: { to: "/" }, words: "Open the inbox" }
    case "server":
      return undefined
  }
}
