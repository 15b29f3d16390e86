/**
 * Which model an agent asks: the server's default, or one of a provider.
 */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Visible } from "../parts/visible.tsx"
import { modelsQuery } from "../server/settings-queries.ts"
import type { DraftFields } from "./draft-fields.ts"
import { ModelParts } from "./model-parts.tsx"

interface ModelFieldsProps extends DraftFields {
  /** Why no model can be asked as the draft stands; null where one can. */
  readonly missing: string | null
}

export const ModelFields = ({ draft, change, at, missing }: ModelFieldsProps): ReactNode => {
  const { project } = useConsole()
  const { data: models } = useQuery(modelsQuery(project.id))
  const byDefault = models?.default
  return (
    <ModelParts
      model={draft.model}
      unsaid={
        byDefault ? `The server's default: ${byDefault.provider}:${byDefault.name}` : "The server's default"
      }
      pointer="/model"
      at={at}
      onChange={(changes) => change({ model: { ...draft.model, ...changes } })}
      notice={
        missing !== null && (
          <p data-testid="model-missing" className="text-sm text-caution-ink">
            <Visible text={missing} />
          </p>
        )
      }
    />
  )
}
