/**
 * Which models can be asked here, which one is asked where nobody says, and what is missing for the others.
 */
import type { ModelsState } from "@tropism/api/models-api"
import type { ModelPrice } from "@tropism/domain/model-price"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Failure } from "../parts/failure.tsx"
import { CautionIcon, CheckIcon } from "../parts/icons.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { modelsQuery } from "../server/settings-queries.ts"
import { moneyText } from "../words/amounts.ts"
import { Row, Rows, SectionHead } from "../parts/rows.tsx"

export const ModelsTab = (): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(modelsQuery(project.id))
  return (
    <>
      <SectionHead lead="API keys are set in the server's environment and are never shown. Restart the server after a change." />
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {data === undefined && error === null && <Skeleton label="Loading models …" />}
      {data !== undefined && (
        <>
          <Default models={data} />
          <Rows label="Providers" rows={data.providers} keyOf={({ provider }) => provider}>
            {(one) => <ProviderRow state={one} />}
          </Rows>
          <p className="mt-4 text-xs text-ink-faint">
            The prices of {data.prices.length.toLocaleString("en")} models are known; other models count as
            free.
          </p>
        </>
      )}
    </>
  )
}

const Default = ({ models }: { readonly models: ModelsState }): ReactNode => (
  <div
    data-default-model={models.default?.name ?? "none"}
    className="mb-3 rounded-xl border border-line bg-surface px-4 py-3 text-sm"
  >
    {models.default === null ? (
      <p>
        No default model for agents that name none. <Visible text={models.defaultMissing ?? ""} />
      </p>
    ) : (
      <p>
        Default model:{" "}
        <strong className="font-semibold">
          <Visible text={`${models.default.provider}:${models.default.name}`} />
        </strong>
        {models.default.price !== null && `, ${priceText(models.default.price)}`}.
      </p>
    )}
  </div>
)

const priceText = ({ inputPerMillion, outputPerMillion }: ModelPrice): string =>
  `${moneyText(inputPerMillion)} input and ${moneyText(outputPerMillion)} output per million tokens`

const ProviderRow = ({ state }: { readonly state: ModelsState["providers"][number] }): ReactNode => {
  const { provider, defaultModel, missing } = state
  return (
    <Row
      title={provider}
      actions={
        <span
          className={`inline-flex items-center gap-1.5 rounded-full px-2 text-2xs leading-5 font-medium ${missing === null ? "bg-leaf-soft text-leaf" : "bg-caution text-caution-ink"}`}
        >
          {missing === null ? <CheckIcon size="tiny" /> : <CautionIcon size="tiny" />}
          {missing === null ? "Available" : "Not configured"}
        </span>
      }
    >
      {missing === null
        ? defaultModel === ""
          ? "Agents name the model."
          : `Default model of this provider: ${defaultModel}.`
        : `To use it, ${missing}.`}
    </Row>
  )
}
