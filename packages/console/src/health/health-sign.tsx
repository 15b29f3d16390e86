/**
 * How something is, as a sign and as a word beside it.
 */
import type { FindingState } from "@tropism/domain/finding"
import type { ReactNode } from "react"
import { CautionIcon, CheckIcon, CrossIcon } from "../parts/icons.tsx"

const looks: Readonly<
  Record<FindingState, { readonly icon: ReactNode; readonly colour: string; readonly word: string }>
> = {
  ok: { icon: <CheckIcon size="small" />, colour: "bg-leaf-soft text-leaf", word: "Healthy" },
  warn: {
    icon: <CautionIcon size="small" />,
    colour: "bg-caution text-caution-ink",
    word: "Needs attention"
  },
  fault: { icon: <CrossIcon size="small" />, colour: "bg-removed text-removed-ink", word: "Failing" }
}

export const HealthSign = ({ state }: { readonly state: FindingState }): ReactNode => (
  <span className={`grid size-6 shrink-0 place-items-center rounded-full ${looks[state].colour}`}>
    {looks[state].icon}
    <span className="sr-only">{looks[state].word}: </span>
  </span>
)

export const healthWord = (state: FindingState): string => looks[state].word

/** The colours of a card that tells of something in this state. */
export const healthColours: Readonly<Record<FindingState, string>> = {
  ok: "border-line bg-surface",
  warn: "border-caution-line bg-caution text-caution-ink",
  fault: "border-removed-strong bg-removed text-removed-ink"
}
