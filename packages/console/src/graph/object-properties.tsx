/**
 * The properties of an object, each with its value, why it is there, and a way to change it.
 */
import type { PropertyProvenance, Provenance } from "@tropism/domain/provenance"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { LongText } from "../parts/long-text.tsx"
import { Visible } from "../parts/visible.tsx"
import { EditProperty } from "./edit-property.tsx"
import { whyText } from "./object-words.ts"
import { PropertyWhy } from "./property-why.tsx"

interface ObjectPropertiesProps {
  readonly provenance: Provenance
  /** Properties whose values come from untrusted sources. */
  readonly untrusted: ReadonlyArray<string>
}

/** What is edited: a property by its name, or a new one. */
type Edited = { readonly property: PropertyProvenance | undefined } | undefined

export const ObjectProperties = ({ provenance, untrusted }: ObjectPropertiesProps): ReactNode => {
  const { canAnswer } = useConsole()
  const [edited, setEdited] = useState<Edited>()
  const mayEdit = canAnswer && provenance.deleted === null
  return (
    <>
      {provenance.properties.length === 0 ? (
        <EmptyState title="No properties">Properties set by people and agents appear here.</EmptyState>
      ) : (
        <ul aria-label="Properties" className="m-0 grid list-none gap-2 p-0">
          {provenance.properties.map((property) => (
            <li key={property.property} className="rounded-xl border border-line bg-surface px-4 py-3">
              <PropertyRow
                property={property}
                isUntrusted={untrusted.includes(property.property)}
                {...(mayEdit && { onEdit: () => setEdited({ property }) })}
              />
            </li>
          ))}
        </ul>
      )}
      {provenance.properties.length > 0 && <AsJson provenance={provenance} />}
      {mayEdit && (
        <p className="mt-4">
          <Button onClick={() => setEdited({ property: undefined })}>Add property</Button>
        </p>
      )}
      {edited !== undefined && (
        <EditProperty
          provenance={provenance}
          property={edited.property}
          onClose={() => setEdited(undefined)}
        />
      )}
    </>
  )
}

/** As they are kept, for who unfolds it. */
const AsJson = ({ provenance }: { readonly provenance: Provenance }): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const properties = provenance.properties.map(({ property, value }) => [property, value] as const)
  return (
    <details className="mt-4" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary className="mb-2 text-sm text-ink-soft">All properties as JSON</summary>
      {isOpen && <JsonView value={Object.fromEntries(properties)} label="Properties" />}
    </details>
  )
}

interface PropertyRowProps {
  readonly property: PropertyProvenance
  readonly isUntrusted: boolean
  readonly onEdit?: () => void
}

const PropertyRow = ({ property, isUntrusted, onEdit }: PropertyRowProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const { property: name, value } = property
  return (
    <>
      <div className="grid gap-x-4 gap-y-1 sm:grid-cols-[minmax(7rem,12rem)_minmax(0,1fr)_auto] sm:items-baseline">
        <h2 className="text-xs font-medium [overflow-wrap:anywhere] text-ink-soft">
          <Visible text={name} exact />
        </h2>
        <div className="min-w-0 font-mono text-xs [overflow-wrap:anywhere] whitespace-pre-wrap">
          <LongText
            text={typeof value === "string" ? value : JSON.stringify(value, null, 2)}
            exact={typeof value === "string"}
          />
          {isUntrusted && (
            <span className="ml-2 rounded bg-caution px-1.5 py-0.5 font-sans text-2xs text-caution-ink">
              from an untrusted source
            </span>
          )}
        </div>
        <div className="flex gap-1">
          <Button size="small" weight="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            Why<span className="sr-only"> is {name} so?</span>
          </Button>
          {onEdit !== undefined && (
            <Button size="small" weight="quiet" onClick={onEdit}>
              Edit<span className="sr-only"> {name}</span>
            </Button>
          )}
        </div>
      </div>
      <p className="mt-1 text-xs text-ink-faint">
        <Visible text={whyText(property)} />
      </p>
      {isOpen && <PropertyWhy property={property} />}
    </>
  )
}
