/**
 * What a model costs, where the server does not know it or a contract says otherwise.
 */
import type { ReactNode } from "react"
import { CheckField, ChoiceField, TextField } from "../parts/form-fields.tsx"
import type { At } from "./draft-fields.ts"
import { emptyLong, emptyPrice, type PriceDraft, type RatesDraft } from "./price-draft.ts"

interface PriceFieldsProps {
  readonly label: string
  readonly price: PriceDraft | null
  /** The place of the price in the definition. */
  readonly pointer: string
  readonly at: At
  readonly onChange: (price: PriceDraft | null) => void
}

export const PriceFields = ({ label, price, pointer, at, onChange }: PriceFieldsProps): ReactNode => (
  <div role="group" aria-label={label} className="grid gap-4 sm:col-span-2 sm:grid-cols-3">
    <ChoiceField
      label={label}
      {...at(pointer)}
      apart={[...rateWords.map(({ name }) => `${pointer}/${name}`), `${pointer}/longPrompts`]}
      value={price === null ? "" : "own"}
      choices={[
        { value: "", label: "Server's price" },
        { value: "own", label: "Custom price" }
      ]}
      onChange={(said) => onChange(said === "" ? null : emptyPrice)}
    />
    {price !== null && (
      <div className="grid gap-4 sm:col-span-3 sm:grid-cols-3">
        <RateFields
          rates={price}
          pointer={pointer}
          at={at}
          onChange={(rates) => onChange({ ...price, ...rates })}
        />
        <div className="sm:col-span-3">
          <CheckField
            label="Different price for long prompts"
            hint="Applies to the whole request"
            isChecked={price.long !== null}
            onChange={(isLong) => onChange({ ...price, long: isLong ? emptyLong : null })}
          />
        </div>
        {price.long !== null && (
          <LongFields
            long={price.long}
            pointer={`${pointer}/longPrompts`}
            at={at}
            onChange={(long) => onChange({ ...price, long })}
          />
        )}
      </div>
    )}
  </div>
)

interface LongFieldsProps {
  readonly long: NonNullable<PriceDraft["long"]>
  readonly pointer: string
  readonly at: At
  readonly onChange: (long: NonNullable<PriceDraft["long"]>) => void
}

const LongFields = ({ long, pointer, at, onChange }: LongFieldsProps): ReactNode => (
  <div role="group" aria-label="Long prompts" className="grid gap-4 sm:col-span-3 sm:grid-cols-3">
    <div className="sm:col-span-3 sm:max-w-xs">
      <TextField
        label="Long prompts: more than (tokens)"
        {...at(`${pointer}/overTokens`)}
        value={long.overTokens}
        onChange={(overTokens) => onChange({ ...long, overTokens })}
      />
    </div>
    <RateFields
      rates={long}
      pointer={pointer}
      at={at}
      onChange={(rates) => onChange({ ...long, ...rates })}
    />
  </div>
)

interface RateFieldsProps {
  readonly rates: RatesDraft
  readonly pointer: string
  readonly at: At
  readonly onChange: (rates: Partial<RatesDraft>) => void
}

const RateFields = ({ rates, pointer, at, onChange }: RateFieldsProps): ReactNode =>
  rateWords.map(({ field, label, hint, name }) => (
    <TextField
      key={field}
      label={label}
      hint={hint}
      {...at(`${pointer}/${name}`)}
      value={rates[field]}
      onChange={(value) => onChange({ [field]: value })}
    />
  ))

const rateWords = [
  { field: "input", label: "Input", hint: "$ per million tokens", name: "inputPerMillion" },
  { field: "output", label: "Output", hint: "$ per million tokens", name: "outputPerMillion" },
  {
    field: "cached",
    label: "Cached input",
    hint: "Leave empty for the input price",
    name: "cachedInputPerMillion"
  },
  {
    field: "cacheWrite",
    label: "Cache writes",
    hint: "Leave empty for the input price",
    name: "cacheWritePerMillion"
  }
] as const
