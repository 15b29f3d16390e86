/**
 * Which model an agent asks: the server's default, or one of a provider.
 */
import { ModelProvider } from "@tropism/domain/model-config"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { Visible } from "../parts/visible.tsx"
import { modelsQuery } from "../server/settings-queries.ts"
import type { DraftFields } from "./draft-fields.ts"

interface ModelFieldsProps extends DraftFields {
  /** Why no model can be asked as the draft stands; null where one can. */
  readonly missing: string | null
}

export const ModelFields = ({ draft, change, error, missing }: ModelFieldsProps): ReactNode => {
  const { project } = useConsole()
  const { data: models } = useQuery(modelsQuery(project.id))
  const byDefault = models?.default
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <ChoiceField
          label="Provider"
          pointer="/model/provider"
          error={error}
          value={draft.provider}
          choices={[
            {
              value: "",
              label: byDefault
                ? `The server's default: ${byDefault.provider}:${byDefault.name}`
                : "The server's default"
            },
            ...ModelProvider.literals.map((value) => ({ value, label: value }))
          ]}
          onChange={(provider) => {
            const offered = models?.providers.find((each) => each.provider === provider)?.defaultModel ?? ""
            change({ provider, modelName: draft.modelName === "" ? offered : draft.modelName })
          }}
        />
        {draft.provider !== "" && (
          <TextField
            label="Model"
            pointer="/model/name"
            error={error}
            value={draft.modelName}
            onChange={(modelName) => change({ modelName })}
            isMono
          />
        )}
      </div>
      {missing !== null && (
        <p className="text-sm text-caution-ink">
          <Visible text={missing} />
        </p>
      )}
      {draft.provider !== "" && (
        <TextField
          label="More of the model"
          hint="A JSON object: temperature, maxOutputTokens, fallback, guard, price, script, …"
          pointer="/model"
          apart={["/model/provider", "/model/name"]}
          error={error}
          value={draft.modelRest}
          onChange={(modelRest) => change({ modelRest })}
          lines={3}
          isMono
        />
      )}
    </>
  )
}
