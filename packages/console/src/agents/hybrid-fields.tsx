/**
 * When a hybrid agent acts without asking: how sure it must be, and what it may earn.
 */
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const HybridFields = ({ draft, change, at }: DraftFields): ReactNode => {
  const { promotion } = draft
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Sure from"
        hint="From 0 to 1; 0.8 by itself"
        {...at("/hybridPolicy/confidenceThreshold")}
        value={draft.threshold}
        onChange={(threshold) => change({ threshold })}
      />
      <ChoiceField
        label="Trust"
        hint="Where it is not sure"
        name="promotion"
        value={promotion === null ? "" : "earned"}
        choices={[
          { value: "", label: "It always asks" },
          { value: "earned", label: "It need not ask once people have agreed often enough" }
        ]}
        onChange={(said) => change({ promotion: said === "" ? null : { minReviews: "20", minRate: "0.95" } })}
      />
      {promotion !== null && (
        <>
          <TextField
            label="After so many reviews"
            hint="Of one kind of change and one type"
            {...at("/hybridPolicy/promotion/minReviews")}
            value={promotion.minReviews}
            onChange={(minReviews) => change({ promotion: { ...promotion, minReviews } })}
          />
          <TextField
            label="With this share accepted as it was"
            hint="From 0 to 1"
            {...at("/hybridPolicy/promotion/minRate")}
            value={promotion.minRate}
            onChange={(minRate) => change({ promotion: { ...promotion, minRate } })}
          />
        </>
      )}
    </div>
  )
}
