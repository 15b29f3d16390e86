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
        label="Confidence threshold"
        hint="0 to 1. Default: 0.8"
        {...at("/hybridPolicy/confidenceThreshold")}
        value={draft.threshold}
        onChange={(threshold) => change({ threshold })}
      />
      <ChoiceField
        label="Trust"
        hint="Below the confidence threshold"
        name="promotion"
        value={promotion === null ? "" : "earned"}
        choices={[
          { value: "", label: "Always ask" },
          { value: "earned", label: "Stop asking after enough approvals" }
        ]}
        onChange={(said) => change({ promotion: said === "" ? null : { minReviews: "20", minRate: "0.95" } })}
      />
      {promotion !== null && (
        <>
          <TextField
            label="Min reviews"
            hint="Per operation and type"
            {...at("/hybridPolicy/promotion/minReviews")}
            value={promotion.minReviews}
            onChange={(minReviews) => change({ promotion: { ...promotion, minReviews } })}
          />
          <TextField
            label="Min share accepted unchanged"
            hint="0 to 1"
            {...at("/hybridPolicy/promotion/minRate")}
            value={promotion.minRate}
            onChange={(minRate) => change({ promotion: { ...promotion, minRate } })}
          />
        </>
      )}
    </div>
  )
}
