/**
 * Members, tokens, sessions, foreign servers, models and the project itself.
 */
import type { ReactNode } from "react"
import { PageHeader } from "../parts/page-header.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { MembersTab } from "./members-tab.tsx"
import { ModelsTab } from "./models-tab.tsx"
import { ProjectTab } from "./project-tab.tsx"
import { type SectionId, sections } from "./sections.ts"
import { ServersTab } from "./servers-tab.tsx"
import { SessionsTab } from "./sessions-tab.tsx"
import { TokensTab } from "./tokens-tab.tsx"

const contents: Readonly<Record<SectionId, Tab["content"]>> = {
  members: () => <MembersTab />,
  tokens: () => <TokensTab />,
  sessions: () => <SessionsTab />,
  servers: () => <ServersTab />,
  models: () => <ModelsTab />,
  project: () => <ProjectTab />
}

const tabs: ReadonlyArray<Tab> = sections.map(({ id, title }) => ({ id, title, content: contents[id] }))

export const SettingsPage = (): ReactNode => (
  <>
    <PageHeader title="Settings" />
    <Tabs label="Settings" tabs={tabs} />
  </>
)
