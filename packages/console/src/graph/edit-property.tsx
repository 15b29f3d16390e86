/**
 * Changes one property of an object, or adds one, against the version that was shown.
 */
import type { GraphObject } from "@tropism/domain/graph"
import type { PropertyProvenance, Provenance } from "@tropism/domain/provenance"
import type { Schema } from "effect"
import { Option, Result } from "effect"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { MovedNotice } from "../parts/moved-notice.tsx"
import { Visible } from "../parts/visible.tsx"
import { objectPath } from "../server/graph-queries.ts"
import { isMissing } from "../server/problem.ts"
import { useWrite } from "../server/use-write.ts"
import { cutText } from "../words/cut-text.ts"
import { visibleText } from "../words/visible-text.ts"
import {
  editableText,
  hasMoved,
  hasProperty,
  isNow,
  kindOf,
  makerText,
  noJson,
  nowText,
  provenanceName,
  type ValueKind,
  writtenValue
} from "./object-words.ts"

interface EditPropertyProps {
  /** The object as it is now. */
  readonly provenance: Provenance
  /** The property as it was when somebody began to edit it; undefined for a new one. */
  readonly property: PropertyProvenance | undefined
  readonly onClose: () => void
}

const kinds = [
  { value: "text", label: "Text" },
  { value: "json", label: "JSON: number, boolean, array, object" }
]

export const EditProperty = ({ provenance, property, onClose }: EditPropertyProps): ReactNode => {
  const [opened, setOpened] = useState(provenance)
  const [name, setName] = useState(property?.property ?? "")
  const [kind, setKind] = useState<ValueKind>(kindOf(property?.value))
  const [text, setText] = useState(editableText(property?.value, kind))
  const [fault, setFault] = useState<string>()
  const { run, isBusy, error, given } = useWrite<GraphObject>(
    property === undefined ? "Add a property" : `Edit ${visibleText(name)}`,
    onClose
  )
  const isDeleted = provenance.deleted !== null || (isMissing(error) && given?.ifMatch === provenance.version)
  // Against the version that was shown, or a later one in which this property is the same.
  const isMoved = hasMoved(opened, provenance, name) && !isNow(provenance, name, writtenValue(text, kind))
  const isThere = property === undefined && !isBusy && hasProperty(provenance, name)
  const { version } = isMoved ? opened : provenance
  const write = (value: Schema.Json) =>
    run({
      path: objectPath(provenance.objectId),
      method: "PATCH",
      ifMatch: version,
      body: { properties: { [name]: value } }
    })
  const save = () => {
    const written = writtenValue(text, kind)
    setFault(Option.getOrUndefined(Result.getFailure(written)))
    if (Result.isSuccess(written)) write(written.success)
  }
  const pointer = `/properties/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`
  return (
    <FormDialog
      title={property === undefined ? "Add a property" : `Edit ${visibleText(name)}`}
      verb="Save"
      isBusy={isBusy}
      isReady={name !== "" && !isDeleted && !isThere}
      error={isMissing(error) ? null : error}
      pointers={[pointer]}
      onSubmit={save}
      onClose={onClose}
    >
      {isDeleted && <DeletedNotice provenance={provenance} />}
      {isMoved && !isThere && (
        <ChangedNotice now={nowText(provenance, name)} onKeep={() => setOpened(provenance)} />
      )}
      {property === undefined && (
        <NewName name={name} onChange={setName} there={isThere ? nowText(provenance, name) : undefined} />
      )}
      <ChoiceField
        label="Format"
        value={kind}
        choices={kinds}
        onChange={(chosen) => setKind(chosen === "json" ? "json" : "text")}
      />
      <TextField
        label="Value"
        pointer={pointer}
        error={error}
        fault={fault === noJson ? `${noJson} Quote the text, or choose Text.` : fault}
        value={text}
        onChange={setText}
        lines={5}
        isMono={kind === "json"}
        hasFirstFocus={property !== undefined}
      />
      {property !== undefined && (
        <p>
          <Button size="small" disabled={isBusy} onClick={() => write(null)}>
            Remove property
          </Button>
        </p>
      )}
    </FormDialog>
  )
}

interface NewNameProps {
  readonly name: string
  readonly onChange: (name: string) => void
  /** What the property is that has this name already. */
  readonly there: string | undefined
}

const NewName = ({ name, onChange, there }: NewNameProps): ReactNode => (
  <TextField
    label="Name"
    value={name}
    onChange={onChange}
    isRequired
    hasFirstFocus
    fault={there && `This property already exists. Its value is ${there}. Edit it instead.`}
  />
)

interface ChangedNoticeProps {
  /** What the property is by now. */
  readonly now: string
  readonly onKeep: () => void
}

const ChangedNotice = ({ now, onKeep }: ChangedNoticeProps): ReactNode => (
  <MovedNotice
    actions={
      <Button size="small" onClick={onKeep}>
        Keep mine and overwrite
      </Button>
    }
  >
    Someone else changed it. It is now <Visible text={cutText(now, 2, 200)} />.
  </MovedNotice>
)

/** The object is gone, and what somebody wrote for it is not: it can be saved once the object is back. */
const DeletedNotice = ({ provenance }: Pick<EditPropertyProps, "provenance">): ReactNode => {
  const { objectId, type, deleted } = provenance
  const { run, isBusy, error } = useWrite("Restore object")
  return (
    <>
      {error !== null && <Failure error={error} />}
      <MovedNotice
        actions={
          <Button
            size="small"
            disabled={isBusy}
            onClick={() => run({ path: objectPath(objectId, "/restore"), method: "POST" })}
          >
            Restore it and save mine
          </Button>
        }
      >
        <Visible text={`${type} ${provenanceName(provenance)}`} /> was deleted in the meantime
        {deleted !== null && (
          <>
            {" "}
            by <Visible text={makerText(deleted)} />
          </>
        )}
        .
      </MovedNotice>
    </>
  )
}
