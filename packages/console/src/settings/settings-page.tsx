/**
 * Members, tokens, sessions, foreign servers, models and the project itself.
 */
import type { ReactNode } from "react"
import { PageHeader } from "../parts/page-header.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { MembersTab } from "./members-tab.tsx"
import { ModelsTab } from "./models-tab.tsx"
import { ProjectTab } from "./project-tab.tsx"
import { ServersTab } from "./servers-tab.tsx"
import { SessionsTab } from "./sessions-tab.tsx"
import { TokensTab } from "./tokens-tab.tsx"

const tabs: ReadonlyArray<Tab> = [
  { id: "members", title: "Members", content: () => <MembersTab /> },
  { id: "tokens", title: "Tokens", content: () => <TokensTab /> },
  { id: "sessions", title: "Sessions", content: () => <SessionsTab /> },
  { id: "servers", title: "MCP servers", content: () => <ServersTab /> },
  { id: "models", title: "Models", content: () => <ModelsTab /> },
  { id: "project", title: "Project", content: () => <ProjectTab /> }
]

export const SettingsPage = (): ReactNode => (
  <>
    <PageHeader title="Settings" />
    <Tabs label="Settings" tabs={tabs} />
  </>
)
