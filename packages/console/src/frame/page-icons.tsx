/**
 * The picture beside each page's name in the navigation.
 */
import type { ReactNode } from "react"
import {
  AgentIcon,
  BoltIcon,
  ChainIcon,
  ChatIcon,
  GraphIcon,
  InboxIcon,
  PlayIcon,
  PulseIcon,
  SettingsIcon,
  WaveIcon
} from "../parts/page-signs.tsx"
import type { PageEntry } from "./pages.ts"

export const pageIcons: Readonly<Record<PageEntry["to"], ReactNode>> = {
  "/": <InboxIcon />,
  "/runs": <PlayIcon />,
  "/graph": <GraphIcon />,
  "/agents": <AgentIcon />,
  "/reactions": <BoltIcon />,
  "/chains": <ChainIcon />,
  "/live": <WaveIcon />,
  "/chat": <ChatIcon />,
  "/status": <PulseIcon />,
  "/settings": <SettingsIcon />
}
