/**
 * The sections of the settings: one table for their tabs and the palette.
 */

export const sections = [
  { id: "members", title: "Members" },
  { id: "tokens", title: "Tokens" },
  { id: "sessions", title: "Sessions" },
  { id: "servers", title: "MCP servers" },
  { id: "models", title: "Models" },
  { id: "project", title: "Project" }
] as const

export type SectionId = (typeof sections)[number]["id"]
