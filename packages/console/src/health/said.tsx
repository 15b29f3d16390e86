/**
 * What somebody else said, an agent or a foreign server: a quotation, and never the console's own words.
 */
import type { ReactNode } from "react"
import { Visible } from "../parts/visible.tsx"
import { cutText } from "../words/cut-text.ts"

export const Said = ({ text }: { readonly text: string }): ReactNode => (
  <blockquote className="border-l-2 border-line-strong pl-3 text-xs text-ink-soft [overflow-wrap:anywhere]">
    <Visible text={cutText(text, 6, 1_000)} />
  </blockquote>
)
