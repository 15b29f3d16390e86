/**
 * A model as it is chosen, for an agent or for a step: its provider, how it is asked, and who stands by.
 */
import { ModelProvider, ReasoningEffort } from "@tropism/domain/model-config"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { CheckField, ChoiceField, TextField } from "../parts/form-fields.tsx"
import { modelsQuery } from "../server/settings-queries.ts"
import type { At } from "./draft-fields.ts"
import type { ModelDraft } from "./model-draft.ts"
import { PriceFields } from "./price-fields.tsx"

interface ModelPartsProps {
  readonly model: ModelDraft
  /** What it is where no provider is chosen. */
  readonly unsaid: string
  /** Its place in the definition: `/model`. */
  readonly pointer: string
  readonly at: At
  readonly onChange: (changes: Partial<ModelDraft>) => void
  /** Stands below the name. */
  readonly notice?: ReactNode
}

export const ModelParts = (props: ModelPartsProps): ReactNode => {
  const { model, unsaid, pointer, at, onChange, notice } = props
  const offeredBy = useOfferedModel()
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <ChoiceField
          label="Provider"
          {...at(`${pointer}/provider`)}
          value={model.provider}
          choices={[{ value: "", label: unsaid }, ...providers]}
          onChange={(provider) =>
            onChange({ provider, name: model.name === "" ? offeredBy(provider) : model.name })
          }
        />
        {model.provider !== "" && (
          <TextField
            label="Model"
            {...at(`${pointer}/name`)}
            value={model.name}
            onChange={(name) => onChange({ name })}
            isMono
          />
        )}
      </div>
      {notice}
      {model.provider !== "" && <AskedFields {...props} />}
    </>
  )
}

const providers = ModelProvider.literals.map((value) => ({ value, label: value }))

const useOfferedModel = () => {
  const { project } = useConsole()
  const { data: models } = useQuery(modelsQuery(project.id))
  return (provider: string): string =>
    models?.providers.find((each) => each.provider === provider)?.defaultModel ?? ""
}

/** How it is asked, and who is asked beside it. */
const AskedFields = (props: ModelPartsProps): ReactNode => {
  const { model, pointer, at, onChange } = props
  return (
    <>
      {(model.provider === "scripted" || model.script !== "") && (
        <TextField
          label="Script"
          hint="JSON object of rules. Leave empty for the built-in script named after the model or the agent."
          {...at(`${pointer}/script`)}
          value={model.script}
          onChange={(script) => onChange({ script })}
          lines={4}
          isMono
        />
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Temperature"
          hint="0 to 2. Leave empty for the provider's default."
          {...at(`${pointer}/temperature`)}
          value={model.temperature}
          onChange={(temperature) => onChange({ temperature })}
        />
        <TextField
          label="Max output tokens"
          hint="Leave empty for the provider's default"
          {...at(`${pointer}/maxOutputTokens`)}
          value={model.maxOutputTokens}
          onChange={(maxOutputTokens) => onChange({ maxOutputTokens })}
        />
        <TextField
          label="Max concurrent requests per server"
          hint="This agent only. Leave empty for the server's limit for the model."
          {...at(`${pointer}/maxConcurrency`)}
          value={model.maxConcurrency}
          onChange={(maxConcurrency) => onChange({ maxConcurrency })}
        />
        <ReasoningFields {...props} />
        <TextField
          label="Context window (tokens)"
          hint="Leave empty to detect it"
          {...at(`${pointer}/contextWindow`)}
          value={model.contextWindow}
          onChange={(contextWindow) => onChange({ contextWindow })}
        />
        <TextField
          label="Max pause in a response (ms)"
          hint="Default: 120,000. The first output may take twice as long."
          {...at(`${pointer}/silenceTimeoutMs`)}
          value={model.silenceTimeoutMs}
          onChange={(silenceTimeoutMs) => onChange({ silenceTimeoutMs })}
        />
        <PriceFields
          label="Model price"
          price={model.price}
          pointer={`${pointer}/price`}
          at={at}
          onChange={(price) => onChange({ price })}
        />
        <FallbackFields {...props} />
        <GuardFields {...props} />
      </div>
    </>
  )
}

const efforts = ReasoningEffort.literals.map((value) => ({ value, label: value }))

const ReasoningFields = ({ model, pointer, at, onChange }: ModelPartsProps): ReactNode =>
  model.provider === "scripted" || model.provider === "replay" ? null : (
    <>
      <ChoiceField
        label="Reasoning"
        hint="Reasoning effort before the model answers"
        {...at(`${pointer}/reasoning`)}
        value={model.reasoning}
        choices={[{ value: "", label: "The model's default" }, ...efforts]}
        onChange={(reasoning) => onChange({ reasoning })}
      />
      <TextField
        label="Provider options"
        hint="JSON object of provider API options. No keys or URLs."
        {...at(`${pointer}/providerOptions`)}
        value={model.providerOptions}
        onChange={(providerOptions) => onChange({ providerOptions })}
        isMono
      />
    </>
  )

const FallbackFields = ({ model, pointer, at, onChange }: ModelPartsProps): ReactNode => {
  const offeredBy = useOfferedModel()
  const { fallback } = model
  const place = `${pointer}/fallback`
  return (
    <>
      <ChoiceField
        label="Fallback model"
        {...at(`${place}/provider`)}
        value={fallback?.provider ?? ""}
        choices={[{ value: "", label: "None" }, ...providers]}
        onChange={(provider) =>
          onChange(
            provider === ""
              ? { fallback: null, race: false }
              : {
                  fallback: {
                    price: null,
                    contextWindow: "",
                    silenceTimeoutMs: "",
                    ...fallback,
                    provider,
                    name: offeredBy(provider)
                  }
                }
          )
        }
      />
      {fallback === null ? (
        <span className="hidden sm:block" />
      ) : (
        <>
          <TextField
            label="Fallback model name"
            {...at(`${place}/name`)}
            value={fallback.name}
            onChange={(name) => onChange({ fallback: { ...fallback, name } })}
            isMono
          />
          <div className="sm:col-span-2">
            <CheckField
              label="Send to both models at once"
              hint="The first response is used"
              isChecked={model.race}
              onChange={(race) => onChange({ race })}
            />
          </div>
          <PriceFields
            label="Fallback model price"
            price={fallback.price}
            pointer={`${place}/price`}
            at={at}
            onChange={(price) => onChange({ fallback: { ...fallback, price } })}
          />
        </>
      )}
    </>
  )
}

const GuardFields = ({ model: { guard }, pointer, at, onChange }: ModelPartsProps): ReactNode => {
  const offeredBy = useOfferedModel()
  const place = `${pointer}/guard`
  return (
    <>
      <ChoiceField
        label="Guardrail model"
        hint="A second model that checks the input of this one"
        {...at(`${place}/provider`)}
        value={guard?.provider ?? ""}
        choices={[{ value: "", label: "None" }, ...providers]}
        onChange={(provider) =>
          onChange({
            guard:
              provider === "" ? null : { instructions: "", ...guard, provider, name: offeredBy(provider) }
          })
        }
      />
      {guard !== null && (
        <>
          <TextField
            label="Guardrail model name"
            hint="Model name at the provider"
            {...at(`${place}/name`)}
            value={guard.name}
            onChange={(name) => onChange({ guard: { ...guard, name } })}
            isMono
          />
          <div className="sm:col-span-2">
            <TextField
              label="Additional guardrail instructions"
              hint="Leave empty for the default checks"
              {...at(`${place}/instructions`)}
              value={guard.instructions}
              onChange={(instructions) => onChange({ guard: { ...guard, instructions } })}
              lines={2}
            />
          </div>
        </>
      )}
    </>
  )
}
