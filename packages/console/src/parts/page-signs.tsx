/**
 * The signs of the pages, drawn like all icons; beside each stands the page's name.
 */
import { drawn } from "./icons.tsx"

export const InboxIcon = drawn(
  <path d="M2.5 9 4.3 3.5h7.4L13.5 9v3.5h-11V9Zm0 0h3.2a2.4 2.4 0 0 0 4.6 0h3.2" />
)
export const PlayIcon = drawn(<path d="m5 3.2 7.5 4.8L5 12.8V3.2Z" />)
export const GraphIcon = drawn(
  <>
    <circle cx="4" cy="11.5" r="1.8" />
    <circle cx="12" cy="10.5" r="1.8" />
    <circle cx="7.5" cy="4" r="1.8" />
    <path d="m5 10 1.9-4.3M8.7 5.4l2.3 3.6M5.8 11.3l4.4-.6" />
  </>
)
export const AgentIcon = drawn(
  <>
    <rect x="3" y="5.5" width="10" height="7.5" rx="2" />
    <path d="M8 2.8v2.7M6 8.7v1M10 8.7v1" />
  </>
)
export const BoltIcon = drawn(<path d="M8.8 2 3.8 9h3.6l-.5 5 5.3-7.2H8.4L8.8 2Z" />)
export const ChainIcon = drawn(<path d="M2.5 4h4v4h4v4h3M2.5 4h0M11.5 10l2 2-2 2" />)
export const WaveIcon = drawn(<path d="M1.8 8h2.4l2-4.8 3.4 9.6 2-4.8h2.6" />)
export const ChatIcon = drawn(<path d="M2.5 3.5h11v7.5H8.2L5 13.5V11H2.5V3.5Z" />)
export const PulseIcon = drawn(
  <path d="M8 13.2S2.5 10 2.5 6.2A2.9 2.9 0 0 1 8 4.9a2.9 2.9 0 0 1 5.5 1.3c0 3.8-5.5 7-5.5 7Z" />
)
export const SettingsIcon = drawn(
  <>
    <path d="M2.5 5h6M12.5 5h1M2.5 11h1M7.5 11h6" />
    <circle cx="10.5" cy="5" r="1.8" />
    <circle cx="5.5" cy="11" r="1.8" />
  </>
)
